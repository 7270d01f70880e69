import { access, chmod, constants, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  type PreparationLine,
  PROJECT_FOLDER,
  SandboxBackendError,
  SHARED_FOLDER,
} from '../sandbox-backend.js';
import { probeBubblewrap, probeNetwork, probeWithoutIsolation } from './isolation-probe.js';
import { type Platform, findSandboxUsers, type UserRange } from './isolation.js';
import type { IsolatedNetwork } from './sandbox-network.js';
import { neededFiles } from './machine-view.js';
import type { ProcessBackendOptions } from './process.options.js';

const SYSTEM_FOLDERS = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

const NO_PROJECT = `tools in sandboxes have no ${PROJECT_FOLDER}: the service, its Node.js or its data is in ${SHARED_FOLDER}`;

/** @throws SandboxBackendError when sandboxes cannot run as the options ask */
export async function detectPlatform(
  options: ProcessBackendOptions,
): Promise<{ platform: Platform; lines: PreparationLine[]; networkObstacle: string | null }> {
  const users = await findSandboxUsers();
  const searchPath = options.environment['PATH'];
  const setpriv = await findProgram('setpriv', searchPath);
  const reasons: string[] = [];
  if (options.isolation !== 'none') {
    const bwrap = await findProgram('bwrap', searchPath);
    const platform = {
      isolation: 'bwrap' as const,
      bwrap: bwrap ?? '',
      network: null,
      hasProject: await canMountProject([options.folder, ...(await neededFiles(options))]),
      setpriv,
      users,
    };
    const reason =
      missingProgram(bwrap, users === null ? '' : setpriv) ?? (await probeBubblewrap(options, platform));
    if (reason === null) {
      // One after the other: both probes run as one user, and all its processes end with the first probe.
      const network = await detectNetwork(options, platform);
      const isolated = log(`sandboxes are isolated by bubblewrap${asUnprivilegedUser(users)}`);
      const project = platform.hasProject ? [] : [warn(NO_PROJECT)];
      return {
        platform: { ...platform, network: network.found },
        lines: [isolated, network.line, ...project, ...(await missingReadPaths(options))],
        networkObstacle: network.obstacle,
      };
    }
    if (options.isolation === 'bwrap') {
      throw new SandboxBackendError(
        `SANDBOX_ISOLATION=bwrap, and bubblewrap cannot be used: ${reason}. If a file of this machine is missing there, name its folder in SANDBOX_READ_PATHS. Or run sandboxes in containers (SANDBOX_BACKEND=docker), or let them go without separation (SANDBOX_ISOLATION=none)`,
      );
    }
    reasons.push(`bubblewrap cannot be used: ${reason}`);
  }
  if (options.network.mode === 'isolated') {
    throw new SandboxBackendError(
      `SANDBOX_NETWORK=isolated, and networks need bubblewrap (${reasons.join('; ') || 'SANDBOX_ISOLATION=none'}): use SANDBOX_BACKEND=docker, or SANDBOX_NETWORK=auto`,
    );
  }
  const platform = { isolation: 'none' as const, setpriv, users };
  return {
    platform,
    lines: [...(await prepareWithoutIsolation(options, platform)), isolationWarning(reasons, users)].map(
      warn,
    ),
    networkObstacle: needsNetworks(reasons[0] ?? 'SANDBOX_ISOLATION=none'),
  };
}

/** @throws SandboxBackendError when the options insist on a network that does not work */
async function detectNetwork(
  options: ProcessBackendOptions,
  platform: Extract<Platform, { isolation: 'bwrap' }>,
): Promise<{ found: IsolatedNetwork | null; line: PreparationLine; obstacle: string | null }> {
  const { network, listenAddress, environment } = options;
  if (network.mode === 'shared') {
    const line = log(`sandboxes share the machine's network (SANDBOX_NETWORK=shared)`);
    return { found: null, line, obstacle: needsNetworks('SANDBOX_NETWORK=shared') };
  }
  const [slirp4netns, ip, unshare] = await Promise.all(
    ['slirp4netns', 'ip', 'unshare'].map(async (name) => await findProgram(name, environment['PATH'])),
  );
  const missing = [
    ...(slirp4netns ? [] : ['slirp4netns']),
    ...(ip ? [] : ['iproute2']),
    ...(unshare && platform.setpriv !== null ? [] : ['util-linux']),
  ];
  const found = {
    bwrap: platform.bwrap,
    slirp4netns: slirp4netns ?? '',
    ip: ip ?? '',
    unshare: unshare ?? '',
    setpriv: platform.setpriv ?? '',
    joinsUserNamespace: platform.users === null,
  };
  const reason =
    (listenAddress === null ? null : 'SANDBOX_ADDRESS makes sandboxes listen on this machine') ??
    (missing.length === 0 ? null : `not installed: ${missing.join(', ')}`) ??
    (await probeNetwork(options, platform, found));
  if (reason === null) {
    return {
      found,
      line: log('each sandbox has a network of its own, which leads to public addresses only'),
      obstacle: null,
    };
  }
  if (network.mode === 'isolated') {
    throw new SandboxBackendError(`SANDBOX_NETWORK=isolated does not work here: ${reason}`);
  }
  return { found: null, line: warn(sharedNetworkWarning(reason)), obstacle: needsNetworks(reason) };
}

async function missingReadPaths({ readPaths }: ProcessBackendOptions): Promise<PreparationLine[]> {
  const lines = readPaths.map(async (name) =>
    (await isThere(name, constants.F_OK))
      ? []
      : [warn(`sandboxes do not see ${name} of SANDBOX_READ_PATHS: it does not exist`)],
  );
  return (await Promise.all(lines)).flat();
}

function sharedNetworkWarning(reason: string): string {
  return `SANDBOXES SHARE THE MACHINE'S NETWORK: what agents run reaches its loopback and the ports of other sandboxes; ${reason}`;
}

function needsNetworks(reason: string): string {
  return `without networks of their own, which bubblewrap, slirp4netns and iproute2 give them, sandboxes have no egress proxy (${reason})`;
}

function log(text: string): PreparationLine {
  return { level: 'log', text };
}

function warn(text: string): PreparationLine {
  return { level: 'warn', text };
}

/** The absolute path of a program; null when it is not installed. */
export async function findProgram(name: string, searchPath: string | undefined): Promise<string | null> {
  const folders = path.isAbsolute(name)
    ? ['/']
    : [
        ...(searchPath ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder)),
        ...SYSTEM_FOLDERS,
      ];
  for (const folder of folders) {
    const file = path.join(folder, name);
    if (await isThere(file, constants.X_OK)) {
      return file;
    }
  }
  return null;
}

async function isThere(file: string, mode: number): Promise<boolean> {
  return await access(file, mode).then(
    () => true,
    () => false,
  );
}

function missingProgram(bwrap: string | null, setpriv: string | null): string | null {
  if (bwrap === null) {
    return 'it is not installed (package bubblewrap)';
  }
  return setpriv === null ? 'setpriv is not installed (package util-linux), which root needs' : null;
}

async function prepareWithoutIsolation(
  options: ProcessBackendOptions,
  platform: Platform,
): Promise<string[]> {
  const notices: string[] = [];
  if (platform.users !== null) {
    const dataFolder = path.dirname(options.folder);
    if (platform.setpriv === null) {
      notices.push('setpriv is not installed (package util-linux): setuid programs work in sandboxes');
    }
    const { mode } = await stat(dataFolder);
    // Execute permission lets them traverse the folder, not list it.
    if ((mode & 0o001) === 0) {
      await chmod(dataFolder, (mode & 0o7777) | 0o001);
      notices.push('the users that sandboxes run as may now traverse the data folder');
    }
  }
  const reason = await probeWithoutIsolation(options, platform);
  if (reason !== null) {
    throw new SandboxBackendError(`Sandboxes cannot run${asUnprivilegedUser(platform.users)}: ${reason}`);
  }
  return notices;
}

function asUnprivilegedUser(users: UserRange | null): string {
  return users === null ? '' : ', each as an unprivileged user of its own';
}

function isolationWarning(reasons: string[], users: UserRange | null): string {
  const readable =
    users === null ? "all that the service's user can" : 'whatever every user of this machine can';
  return [
    `SANDBOXES ARE NOT ISOLATED: what agents run can read ${readable}; for one trusted user only`,
    ...reasons,
  ].join('; ');
}

/** Whether the folder can be mounted: none of the `needed` paths may be below it (a service installed there). */
export async function canMountProject(needed: readonly string[]): Promise<boolean> {
  const real = needed.map(async (name) => await realpath(name).catch(() => name));
  return ![...needed, ...(await Promise.all(real))].some((name) => isShared(name));
}

function isShared(name: string): boolean {
  return name === SHARED_FOLDER || name.startsWith(`${SHARED_FOLDER}/`);
}
