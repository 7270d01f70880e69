import { describe } from '@jest/globals';
import { spawnSync, type StdioOptions } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  PROCESS_BACKEND_DEFAULTS,
  type ProcessIsolation,
  type ProcessBackendOptions,
} from './process.options.js';
import { ProcessSandboxBackend } from './process.backend.js';
import { sandboxLaunch as anyLaunch } from '../../../../test/support/sandbox-launch.js';
import { inheritedEnvironment } from '../../../../test/support/service-process.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import type { SandboxBackendHarness } from '../sandbox-backend.harness.js';

const ENTRY = fileURLToPath(new URL('../../../../dist/bundle/agent-server/main.js', import.meta.url));
const LOADER = fileURLToPath(new URL('../../../../scripts/lib/typescript-loader.cjs', import.meta.url));
const STARTER = fileURLToPath(new URL('../../../../test/fakes/start-sandbox.ts', import.meta.url));

const isInstalled = (program: string, flag = '--version'): boolean => spawnSync(program, [flag]).status === 0;

/** Where bubblewrap is installed but unusable, tests fail; where it is not installed, they do without. */
const HAS_BUBBLEWRAP = isInstalled('bwrap');
export const ISOLATIONS: readonly ProcessIsolation[] = HAS_BUBBLEWRAP ? ['none', 'bwrap'] : ['none'];
export const describeInBubblewrap = HAS_BUBBLEWRAP ? describe : describe.skip;
/** The same of what gives sandboxes a network of their own. */
export const describeNetwork =
  HAS_BUBBLEWRAP && isInstalled('slirp4netns') && isInstalled('ip', '-V') ? describe : describe.skip;

/** A process backend over a data folder of its own. */
export interface ProcessHarness extends SandboxBackendHarness {
  backend: ProcessSandboxBackend;
  dataDir: string;
  options: ProcessBackendOptions;
  /** @param changes that an operator may make between two starts */
  reopen(changes?: Partial<ProcessBackendOptions>): Promise<ProcessSandboxBackend>;
  /** Removes all sandboxes, also those without a label. */
  clear(): Promise<void>;
}

export async function processHarness(
  isolation: 'auto' | ProcessIsolation,
  changes: Partial<ProcessBackendOptions> = {},
): Promise<ProcessHarness> {
  const dataDir = await realpath(await mkdtemp(path.join(tmpdir(), 'process-backend-')));
  // The service creates it with this mode.
  await chmod(dataDir, 0o700);
  const home = path.join(dataDir, 'home-of-service');
  await mkdir(home);
  const hidden = { file: path.join(home, 'key'), text: 'a key of the service' };
  // World-readable, so that only hiding protects it.
  await writeFile(hidden.file, hidden.text, { mode: 0o644 });
  const options: ProcessBackendOptions = {
    ...PROCESS_BACKEND_DEFAULTS,
    folder: path.join(dataDir, 'sandboxes'),
    instanceId: 'instance-of-a-test',
    hostId: 'host-of-a-test',
    isolation,
    hiddenPaths: [dataDir, home],
    agentServer: {
      node: process.execPath,
      entry: ENTRY,
      relay: path.join(path.dirname(ENTRY), 'relay.main.js'),
      args: [],
    },
    network: { mode: 'auto', allow: [] },
    egressPort: 0,
    environment: { PATH: process.env['PATH'], DATABASE_URL: 'postgres://nobody:secret@127.0.0.1/none' },
    ...changes,
  };
  const reopen = async (later: Partial<ProcessBackendOptions> = {}) => {
    const backend = new ProcessSandboxBackend({ ...options, ...later });
    await backend.prepare();
    return backend;
  };
  const backend = await reopen();
  const clear = async () => {
    const ids = await readdir(options.folder);
    await Promise.all(ids.map(async (id) => await backend.remove(id)));
  };
  return {
    backend,
    dataDir,
    options,
    hidden,
    reopen,
    launch: sandboxLaunch,
    brokenLaunch: () => shellLaunch('echo it is broken; exit 7'),
    clear,
    close: async () => {
      await clear();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A launch of our own agent server under a new id and key. */
export function sandboxLaunch(changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return anyLaunch({ workingDir: 'workspace', ...changes });
}

/** A launch of a program of the test. */
export function shellLaunch(script: string, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return sandboxLaunch({ program: { kind: 'command', command: 'sh', args: ['-c', script] }, ...changes });
}

/** The same in JavaScript. */
export function nodeLaunch(script: string, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  const program = { kind: 'command' as const, command: process.execPath, args: ['-e', script] };
  return sandboxLaunch({ program, ...changes });
}

/** Blocks this process until another service has started the sandbox anew, and has died. */
export function startElsewhere(options: ProcessBackendOptions, launch: SandboxLaunch, stdio?: StdioOptions) {
  return spawnSync(process.execPath, ['--require', LOADER, STARTER], {
    env: inheritedEnvironment(),
    input: JSON.stringify({ options, launch }),
    encoding: 'utf8',
    ...(stdio && { stdio }),
  });
}
