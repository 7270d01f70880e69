import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { sendSignal } from '../../../../common/processes/end-processes.js';
import { withoutInherited } from '../../../../common/processes/inherited-descriptors.js';
import { diskSpace, spaceProblem } from '../disk-space.js';
import { SandboxBackendError, type SandboxExit, type SandboxLaunch } from '../sandbox-backend.js';
import { programWrapper, spawnIdentity, toolWrapper, type Platform } from './isolation.js';
import { freePort, PortReservations } from './port-reservations.js';
import type { ProcessBackendOptions } from './process-options.js';
import {
  LOOPBACK,
  needsAssignedPort,
  programCommand,
  programMarker,
  sandboxEnvironment,
  sandboxMarker,
  unsupportedOverrides,
} from './program-command.js';
import { identifyProcess, isProgramAlive, type ProgramRecord } from './program-record.js';
import { relativeWorkingDir, SandboxFiles, sandboxIds, type SandboxPaths } from './sandbox-files.js';
import { terminateSandbox } from './sandbox-termination.js';
import { pickSandboxUser, isInRange } from './sandbox-users.js';

export interface StartedProgram extends SpawnedProgram {
  /** The user that only this sandbox runs as; null when it has none of its own. */
  user: number | null;
}

/** Creates the folders of sandboxes and starts their programs. */
export class ProgramLauncher {
  readonly #options: ProcessBackendOptions;
  readonly #platform: Platform;
  readonly #portReservations: PortReservations;

  constructor(options: ProcessBackendOptions, platform: Platform) {
    this.#options = options;
    this.#platform = platform;
    this.#portReservations = new PortReservations(options.folder, options.listenAddress ?? LOOPBACK);
  }

  /**
   * Starts a sandbox's program; null when it already runs.
   *
   * @param create whether to create a sandbox that does not exist
   * @throws SandboxBackendError when it cannot be started
   */
  async start(launch: SandboxLaunch, signal: AbortSignal, create: boolean): Promise<StartedProgram | null> {
    signal.throwIfAborted();
    const { folder, fileLimits, agentServer, environment, listenAddress } = this.#options;
    const files = new SandboxFiles(folder, launch.id, relativeWorkingDir(launch.workingDir));
    const { paths } = files;
    const earlier = await files.program();
    if (earlier !== null && isProgramAlive(earlier)) {
      return null;
    }
    const host = listenAddress ?? LOOPBACK;
    const port = needsAssignedPort(launch.program) ? await freePort(host) : null;
    const isolated = this.#platform.isolation === 'bwrap';
    const { command, input } = programCommand({
      launch,
      paths,
      agentServer,
      toolWrapper:
        this.#platform.isolation === 'bwrap' ? toolWrapper(this.#platform.programs.bwrap, paths) : [],
      host,
      port,
    });
    await requireSpace(folder, fileLimits.minFreeBytes);
    const user = await this.#prepareFiles(launch.id, files, earlier === null, create);
    const wrapper = await programWrapper(this.#options, this.#platform, paths, user);
    unsupportedOverrides(launch).forEach((sentence) => launch.onShortfall?.(sentence));
    signal.throwIfAborted();
    const tmp = isolated ? '/tmp' : paths.tmp;
    const run = randomUUID();
    const marker = programMarker(this.#options.instanceId, launch.id, run);
    const spawned = await this.#portReservations.reserve(launch.id, Object.keys(launch.ports), (ports) =>
      spawnProgram({
        command: [...wrapper, ...command],
        cwd: isolated ? '/' : paths.box,
        env: sandboxEnvironment({
          serviceEnvironment: environment,
          launch,
          paths,
          tmp,
          marker,
          port,
          ports,
          host,
        }),
        input,
        identity: spawnIdentity(this.#platform, user),
        paths,
        record: { run, port, ports, namespaced: isolated },
      }),
    );
    return { ...spawned, user: this.#exclusive(user) };
  }

  /** The user that only this sandbox runs as; null when it has none of its own. */
  async exclusiveUser(files: SandboxFiles): Promise<number | null> {
    return this.#platform.users === null ? null : this.#exclusive(await files.owner());
  }

  #exclusive(owner: number | null): number | null {
    const { users } = this.#platform;
    return users !== null && owner !== null && isInRange(owner, users) ? owner : null;
  }

  /** @returns the user that the sandbox runs as; null: the service's own */
  async #prepareFiles(
    id: string,
    files: SandboxFiles,
    isFirst: boolean,
    create: boolean,
  ): Promise<number | null> {
    const { instanceId, hostId } = this.#options;
    const existed = await files.exists();
    if (!existed && !create) {
      throw new SandboxBackendError('The sandbox cannot be resumed: its files are gone.');
    }
    if (isFirst) {
      const label = (await files.label()) ?? { instanceId, hostId, createdAt: Date.now() };
      await files.create(label, await this.#newUser(id));
    }
    if (existed) {
      // Ends leftovers of a program that died, or of a start that was interrupted before it was recorded.
      const marker = sandboxMarker(instanceId, id);
      const user = await this.exclusiveUser(files);
      await terminateSandbox({ record: null, ended: null, marker, user, graceMs: 0 });
    }
    await files.clearReports();
    return await this.#userOf(files);
  }

  /** A sandbox that was created before the service became root keeps its user. */
  async #userOf(files: SandboxFiles): Promise<number | null> {
    if (this.#platform.users === null) {
      return null;
    }
    const owner = await files.owner();
    if (owner === 0) {
      throw new SandboxBackendError('The sandbox cannot be started: its files belong to root.');
    }
    return owner;
  }

  async #newUser(id: string): Promise<number | null> {
    const { folder } = this.#options;
    if (this.#platform.users === null) {
      return null;
    }
    const others = (await sandboxIds(folder)).filter((other) => other !== id);
    const owners = others.map(async (other) => await new SandboxFiles(folder, other).owner());
    const taken = (await Promise.all(owners)).filter((owner) => owner !== null);
    return pickSandboxUser(id, this.#platform.users, new Set(taken));
  }
}

/** @throws SandboxBackendError when the disk is nearly full */
async function requireSpace(folder: string, minFreeBytes: number): Promise<void> {
  const problem = spaceProblem(await diskSpace(folder), minFreeBytes, 'the disk of DATA_DIR');
  if (problem !== null) {
    throw new SandboxBackendError(problem);
  }
}

interface SpawnInput {
  /** Program and arguments. */
  command: string[];
  cwd: string;
  /** The whole environment. */
  env: Record<string, string>;
  /** Written to its standard input; null: it has none. */
  input: string | null;
  /** The user to spawn as, where the command does not change it. */
  identity: { uid?: number; gid?: number };
  paths: SandboxPaths;
  /** What is recorded of the process besides its identity. */
  record: Pick<ProgramRecord, 'run' | 'port' | 'ports' | 'namespaced'>;
}

interface SpawnedProgram {
  record: ProgramRecord;
  ended: Promise<SandboxExit>;
}

/**
 * Starts a program that outlives this process, records its identity and detaches from it.
 *
 * @throws SandboxBackendError when there is no such program
 */
async function spawnProgram(input: SpawnInput): Promise<SpawnedProgram> {
  const child = spawnDetached(input);
  const ended = new Promise<SandboxExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal, outOfMemory: false }));
  });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
  });
  const pid = child.pid;
  if (pid === undefined) {
    return await throwSpawnFailure(failed, input.command);
  }
  // In the same tick: Node.js cannot have reaped the process yet, so its identity can be read even if it has ended.
  const record = { ...identifyProcess(pid), ...input.record };
  try {
    writeFileSync(`${input.paths.program}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(`${input.paths.program}.new`, input.paths.program);
  } catch (error) {
    sendSignal(-pid, 'SIGKILL');
    throw new SandboxBackendError('The sandbox cannot be started: its files cannot be written.', {
      cause: error,
    });
  }
  // Fails when the program ended before it read its input, which its exit shows.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input.input);
  child.unref();
  return { record, ended };
}

function spawnDetached({ command, cwd, env, input, identity, paths }: SpawnInput): ChildProcess {
  const [program = '', ...args] = command;
  // Files rather than pipes, which would fill up or break when the service is gone.
  const files = [openSync(paths.log, 'a', 0o600), openSync(paths.status, 'w', 0o600)] as const;
  try {
    const [log, status] = files;
    return spawn(program, args, {
      ...identity,
      cwd,
      env,
      detached: true,
      stdio: withoutInherited([input === null ? 'ignore' : 'pipe', log, log, status]),
    });
  } finally {
    files.forEach((file) => closeSync(file));
  }
}

async function throwSpawnFailure(failed: Promise<never>, [program = '']: string[]): Promise<never> {
  try {
    return await failed;
  } catch (error) {
    throw new SandboxBackendError(`The sandbox cannot be started: ${program} cannot be run.`, {
      cause: error,
    });
  }
}
