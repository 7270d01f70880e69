import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { errorMessage } from '../../../../common/errors/error-message.js';
import { endProcesses } from '../../../../common/processes/end-processes.js';
import { withoutInherited } from '../../../../common/processes/inherited-descriptors.js';
import { type Platform, programWrapper, spawnIdentity, toolWrapper } from './isolation.js';
import type { ProcessBackendOptions } from './process-options.js';
import { sandboxMarker } from './program-command.js';
import { SandboxFiles } from './sandbox-files.js';
import { removeTree } from './tree-removal.js';

const TIMEOUT_MS = 20_000;
const MAX_REASON = 300;
/** Checks access to the program, its entry and its folder, then runs the rest of the command. */
const CHECK = `
test -x "$1" || { echo "$1 cannot be run" >&2; exit 1; }
test -r "$2" || { echo "$2 cannot be read" >&2; exit 1; }
cd "$3" || exit 1
shift 3
exec "$@"
`;

/** Runs a tool's command in a sandbox, in a tool's namespaces; returns why that fails, or null. */
export async function probeBubblewrap(
  options: ProcessBackendOptions,
  platform: Extract<Platform, { isolation: 'bwrap' }>,
): Promise<string | null> {
  return await probe(options, platform, (files) => toolWrapper(platform.programs.bwrap, files.paths));
}

/** Runs a command as sandboxes do without isolation; returns why that fails, or null. */
export async function probeWithoutIsolation(
  options: ProcessBackendOptions,
  platform: Platform,
): Promise<string | null> {
  return await probe(options, platform, () => []);
}

async function probe(
  options: ProcessBackendOptions,
  platform: Platform,
  wrapTool: (files: SandboxFiles) => string[],
): Promise<string | null> {
  const { folder, instanceId, hostId, agentServer } = options;
  const id = `.probe-${randomUUID()}`;
  const files = new SandboxFiles(folder, id);
  const user = platform.users?.first ?? null;
  try {
    await files.create({ instanceId, hostId, createdAt: Date.now() }, user);
    const [program = '', ...args] = [
      await programWrapper(options, platform, files.paths, user),
      ['/bin/sh', '-c', CHECK, 'check', agentServer.node, agentServer.entry, files.paths.box],
      wrapTool(files),
      ['/bin/sh', '-c', 'exit 0'],
    ].flat();
    const marker = sandboxMarker(instanceId, id);
    return await runProbe(program, args, { marker, ...spawnIdentity(platform, user) });
  } finally {
    await removeTree(files.paths.root);
  }
}

async function runProbe(
  program: string,
  args: string[],
  { marker, ...identity }: { marker: string; uid?: number; gid?: number },
): Promise<string | null> {
  const [name = '', value = ''] = marker.split('=', 2);
  // Nobody reads bubblewrap's reports here.
  const reports = openSync('/dev/null', 'w');
  const child = spawn(program, args, {
    ...identity,
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', [name]: value },
    stdio: withoutInherited(['ignore', 'ignore', 'pipe', reports]),
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  closeSync(reports);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-MAX_REASON);
  });
  const closed = once(child, 'close');
  try {
    await once(child, 'exit');
    // A bubblewrap that fails half-way may leave a process that waits for it forever and keeps our pipe open.
    await endProcesses({ root: null, marker, user: null });
    await closed;
  } catch (error) {
    return errorMessage(error);
  }
  if (child.exitCode === 0) {
    return null;
  }
  const line = errors.trim().split('\n').at(-1);
  return line || `it ended with ${child.signalCode ?? `exit code ${child.exitCode}`}`;
}
