import { access } from 'node:fs/promises';
import path from 'node:path';
import { asUser, sandboxWrapper } from './bubblewrap.js';
import type { Platform } from './platform.js';
import type { ProcessBackendOptions } from './process-backend-options.js';
import type { SandboxPaths } from './sandbox-paths.js';
import { existing, programFiles, type VisibleFiles, visibleFiles } from './visible-files.js';

/** The descriptor that bubblewrap's reports go to. */
export const STATUS_FD = 3;

/** Sockets that rule the machine lie there: of container engines, of the session's services. */
const ALWAYS_HIDDEN = ['/run'];
/** What name resolution may need of it. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve'];
const CERTIFICATE_VARIABLES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE'];

/** What comes before a sandbox's program on this platform. */
export async function programWrapper(
  options: ProcessBackendOptions,
  platform: Platform,
  paths: SandboxPaths,
  user: number | null,
): Promise<string[]> {
  if (platform.isolation === 'bwrap') {
    const [visible, hasVarTmp] = await Promise.all([filesSeen(options), exists('/var/tmp')]);
    return sandboxWrapper({
      programs: platform.programs,
      visible,
      paths,
      hasVarTmp,
      user,
      statusFd: STATUS_FD,
    });
  }
  if (user === null) {
    return [];
  }
  return platform.setpriv === null
    ? []
    : [platform.setpriv, ...asUser(user), '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all', '--'];
}

/** As whom to start the program where nothing comes before it that changes the user. */
export function spawnIdentity(platform: Platform, user: number | null): { uid?: number; gid?: number } {
  return platform.isolation === 'none' && platform.setpriv === null && user !== null
    ? { uid: user, gid: user }
    : {};
}

async function filesSeen(options: ProcessBackendOptions): Promise<VisibleFiles> {
  const { folder, hiddenPaths, agentServer, environment } = options;
  const { product, files } = programFiles(agentServer.node, agentServer.entry);
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []);
  const named = [...files, ...RESOLVER_FILES, ...certificates.filter((name) => path.isAbsolute(name))];
  const [hidden, needed] = await Promise.all([
    existing([...ALWAYS_HIDDEN, folder, product, ...hiddenPaths]),
    existing(named),
  ]);
  const there = await Promise.all(named.map(async (name) => ((await exists(name)) ? [name] : [])));
  return visibleFiles({ hidden, needed: [...there.flat(), ...needed.map((entry) => entry.path)] });
}

async function exists(name: string): Promise<boolean> {
  return await access(name).then(
    () => true,
    () => false,
  );
}
