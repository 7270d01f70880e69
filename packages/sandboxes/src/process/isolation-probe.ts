import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { writeFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { endProcesses } from '@slipway/common/processes/end-processes.js';
import { textTail } from '@slipway/common/well-formed-text.js';
import { withoutInherited } from '@slipway/common/processes/inherited-descriptors.js';
import { type Platform, programWrapper, spawnIdentity, toolWrapper } from './isolation.js';
import {
  attachNetwork,
  detachNetwork,
  type IsolatedNetwork,
  NETWORK_INTERFACE,
  networkRules,
  resolverConfiguration,
} from './sandbox-network.js';
import type { ProcessBackendOptions } from './process.options.js';
import { sandboxMarker } from './program-command.js';
import { SandboxFiles } from './sandbox-files.js';
import { removeTree } from './tree-removal.js';

type IsolatedPlatform = Extract<Platform, { isolation: 'bwrap' }>;

const TIMEOUT_MS = 20_000;
const MAX_REASON = 300;
const PROBE_RUN = 'probe';
export const PROBE_PREFIX = '.probe-';
const CHECK = `
"$1" --version > /dev/null || { echo "$1 cannot be run" >&2; exit 1; }
test -r "$2" || { echo "$2 cannot be read" >&2; exit 1; }
cd "$3" || exit 1
shift 3
exec "$@"
`;

const AWAIT_NETWORK = `
attempts=0
until grep -q "$1" /proc/net/dev; do
  attempts=$((attempts + 1))
  test $attempts -lt 1000 || { echo "the interface $1 does not appear" >&2; exit 1; }
  sleep 0.01
done
`;

/** Runs a tool's command in a sandbox's namespaces; returns why that fails, or null. */
export async function probeBubblewrap(
  options: ProcessBackendOptions,
  platform: IsolatedPlatform,
): Promise<string | null> {
  return await probe(options, platform, async (files, user) => {
    const tool = toolWrapper(platform.bwrap, files.paths, platform.hasProject);
    return await runProgram(options, platform, files, user, tool);
  });
}

/** Runs a command in a sandbox and connects its network; returns why that fails, or null. */
export async function probeNetwork(
  options: ProcessBackendOptions,
  platform: IsolatedPlatform,
  network: IsolatedNetwork,
): Promise<string | null> {
  return await probe(options, { ...platform, network }, async (files, user) => {
    const { paths } = files;
    const rules = await networkRules([], [], async () => []);
    await writeFile(paths.resolver, resolverConfiguration(''));
    const wrapper = await programWrapper(options, { ...platform, network }, paths, user, rules);
    const marker = sandboxMarker(options.instanceId, path.basename(paths.root));
    const command = [...wrapper, '/bin/sh', '-c', AWAIT_NETWORK, 'await', NETWORK_INTERFACE];
    const { pid, ended, failure } = startProbe(command, { marker });
    try {
      if (pid !== undefined) {
        const input = { paths, network, pid, run: PROBE_RUN, marker, signal: ended };
        const { connected } = await attachNetwork(input);
        await connected;
      }
      return await failure;
    } catch (error) {
      if (ended.aborted) {
        return await failure;
      }
      await endProcesses({ root: null, marker, user: null });
      return errorMessage(error instanceof Error ? (error.cause ?? error) : error);
    } finally {
      await detachNetwork(paths, PROBE_RUN);
    }
  });
}

/** Runs a command as sandboxes do without isolation; returns why that fails, or null. */
export async function probeWithoutIsolation(
  options: ProcessBackendOptions,
  platform: Platform,
): Promise<string | null> {
  return await probe(
    options,
    platform,
    async (files, user) => await runProgram(options, platform, files, user, []),
  );
}

async function probe(
  { folder, instanceId, hostId }: ProcessBackendOptions,
  platform: Platform,
  run: (files: SandboxFiles, user: number | null) => Promise<string | null>,
): Promise<string | null> {
  const files = new SandboxFiles(folder, `${PROBE_PREFIX}${randomUUID()}`);
  const user = platform.users?.first ?? null;
  try {
    await files.create({ instanceId, hostId, createdAt: Date.now() }, user);
    return await run(files, user);
  } finally {
    await removeTree(files.paths.root);
  }
}

async function runProgram(
  options: ProcessBackendOptions,
  platform: Platform,
  { paths }: SandboxFiles,
  user: number | null,
  tool: string[],
): Promise<string | null> {
  const { agentServer, instanceId } = options;
  const command = [
    await programWrapper(options, platform, paths, user, null),
    ['/bin/sh', '-c', CHECK, 'check', agentServer.node, agentServer.entry, paths.box],
    tool,
    ['/bin/sh', '-c', 'exit 0'],
  ].flat();
  const marker = sandboxMarker(instanceId, path.basename(paths.root));
  return await startProbe(command, { marker, ...spawnIdentity(platform, user) }).failure;
}

interface ProbeOptions {
  marker: string;
  uid?: number;
  gid?: number;
}

interface StartedProbe {
  pid: number | undefined;
  ended: AbortSignal;
  failure: Promise<string | null>;
}

function startProbe([program = '', ...args]: string[], { marker, ...identity }: ProbeOptions): StartedProbe {
  const [name = '', value = ''] = marker.split('=', 2);
  // The probe needs no reports of bubblewrap.
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
  const ended = new AbortController();
  child.once('exit', () => ended.abort());
  return { pid: child.pid, ended: ended.signal, failure: failureOf(child, marker) };
}

async function failureOf(child: ChildProcess, marker: string): Promise<string | null> {
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = textTail(errors + text, MAX_REASON);
  });
  try {
    await Promise.all([
      once(child, 'close'),
      // A bubblewrap that fails half-way may leave a process that waits for it forever and keeps our pipe open.
      once(child, 'exit').then(async () => await endProcesses({ root: null, marker, user: null })),
    ]);
  } catch (error) {
    return errorMessage(error);
  }
  if (child.exitCode === 0) {
    return null;
  }
  const line = errors.trim().split('\n').at(-1);
  return line || `it ended with ${child.signalCode ?? `exit code ${child.exitCode}`}`;
}

/** Twice as long as a probe may take before it is killed. */
const ABANDONED_MS = 40_000;

/** Replicas that share the folder may not see each other's processes, so only age tells which probes are abandoned. */
export class AbandonedProbes {
  private seenAt = new Map<string, number>();

  constructor(
    private readonly options: Pick<ProcessBackendOptions, 'folder' | 'instanceId'>,
    private readonly monotonic: () => number = () => performance.now(),
  ) {}

  async remove(): Promise<void> {
    const { folder, instanceId } = this.options;
    const now = this.monotonic();
    const names = (await readdir(folder)).filter((name) => name.startsWith(PROBE_PREFIX));
    this.seenAt = new Map(names.map((name) => [name, this.seenAt.get(name) ?? now]));
    for (const [name, seenAt] of this.seenAt) {
      if (now >= seenAt + ABANDONED_MS) {
        await endProcesses({ root: null, marker: sandboxMarker(instanceId, name), user: null });
        await removeTree(path.join(folder, name));
      }
    }
  }
}
