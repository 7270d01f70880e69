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
import type { SandboxLaunch } from '../sandbox-backend.js';
import type { SandboxBackendHarness } from '../sandbox-backend.harness.js';

const ENTRY = fileURLToPath(new URL('../../../../dist/bundle/agent-server/main.js', import.meta.url));

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
    brokenLaunch: () =>
      sandboxLaunch({
        program: { kind: 'command', command: 'sh', args: ['-c', 'echo it is broken; exit 7'] },
      }),
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
