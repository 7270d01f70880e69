import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { KeyedLimit } from '../../../../common/async.js';
import { readProcesses } from '../../../../common/processes/process-table.js';
import { type DiskSpace, diskSpace } from '../disk-space.js';
import {
  SandboxBackendError,
  SandboxBackend,
  type SandboxFacts,
  type SandboxLaunch,
} from '../sandbox-backend.js';
import { type TerminationInput, terminateSandbox } from './sandbox-termination.js';
import { detectPlatform } from './platform.js';
import type { ProcessIsolation, ProcessBackendOptions } from './process-options.js';
import { programAddress, programAddresses, programMarker, sandboxMarker } from './program-command.js';
import { isProgramAlive, parseExit, parseBubblewrapStatus } from './program-record.js';
import {
  removeTree,
  isSandboxId,
  readIfExists,
  REMOVED_PREFIX,
  SandboxFiles,
  sandboxIds,
  rotateLog,
  readLogTail,
} from './sandbox-files.js';
import { ProgramLauncher, type StartedProgram } from './program-launcher.js';

/**
 * Sandboxes as processes of this machine, each in a folder of its own. They outlive the service; all that is known of
 * them is in their folders, and which process is theirs is told by pid, start time and boot.
 */
export class ProcessSandboxBackend extends SandboxBackend {
  readonly kind = 'process';
  readonly #options: ProcessBackendOptions;
  /** One thing at a time per sandbox. */
  readonly #queue = new KeyedLimit(1);
  /** Programs that this process started, until their end is written down. */
  readonly #programs = new Map<string, StartedProgram & { written: Promise<void> }>();
  /** Sandboxes that are just being ended, with all that their programs leave behind. */
  readonly #ending = new Set<string>();
  #prepared: { isolation: ProcessIsolation; starter: ProgramLauncher } | null = null;

  constructor(options: ProcessBackendOptions) {
    super();
    this.#options = options;
  }

  /**
   * What keeps sandboxes from the machine and from each other; `none` is not fit for several users.
   *
   * @throws SandboxBackendError before `prepare` has found out
   */
  get isolation(): ProcessIsolation {
    return this.#ready().isolation;
  }

  async prepare(): Promise<string[]> {
    const { folder } = this.#options;
    if (readProcesses() === null) {
      throw new SandboxBackendError(
        'SANDBOX_BACKEND: process sandboxes need Linux with /proc; use docker here.',
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o711 });
    const { platform, notices } = await detectPlatform(this.#options);
    this.#prepared = {
      isolation: platform.isolation,
      starter: new ProgramLauncher(this.#options, platform),
    };
    const leftovers = (await readdir(folder)).filter((name) => name.startsWith(REMOVED_PREFIX));
    await Promise.all(leftovers.map(async (name) => await removeTree(path.join(folder, name))));
    return notices;
  }

  async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.#start(launch, signal, true);
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.#start(launch, signal, false);
  }

  async inspect(id: string): Promise<SandboxFacts> {
    const files = this.#files(id);
    const nothing = { id, address: null, ports: {}, exit: null };
    if (!(await files.exists())) {
      return { ...nothing, state: 'missing', createdAt: null };
    }
    const [label, record] = await Promise.all([files.label(), files.program()]);
    const createdAt = label?.createdAt ?? null;
    if (record === null) {
      return { ...nothing, state: 'stopped', createdAt };
    }
    if (isProgramAlive(record)) {
      await rotateLog(files.paths.log, this.#options.fileLimits.logBytes);
      const port = record.port ?? (await files.reportedPort());
      const { listenAddress } = this.#options;
      const address = port === null ? null : programAddress(listenAddress, port);
      const ports = programAddresses(listenAddress, record.ports);
      return { ...nothing, state: 'running', address, ports, createdAt };
    }
    await this.#programs.get(id)?.written;
    const exit =
      parseBubblewrapStatus(await readIfExists(files.paths.status)) ??
      parseExit(await readIfExists(files.paths.exit), record);
    return { ...nothing, state: 'stopped', exit, createdAt };
  }

  async logTail(id: string): Promise<string> {
    return await readLogTail(this.#files(id).paths.log);
  }

  async pause(id: string): Promise<void> {
    await this.#queue.run(id, async () => await this.#end(id, this.#options.graceMs));
  }

  async remove(id: string): Promise<void> {
    await this.#queue.run(id, async () => {
      await this.#end(id, 0);
      await this.#files(id).remove();
    });
  }

  async list(): Promise<SandboxFacts[]> {
    const { folder, instanceId, hostId } = this.#options;
    const found = (await sandboxIds(folder)).map(async (id) => {
      const label = await this.#files(id).label();
      const isOurs = label?.instanceId === instanceId && label.hostId === hostId;
      return isOurs ? [await this.inspect(id)] : [];
    });
    // One may have been removed meanwhile.
    return (await Promise.all(found)).flat().filter(({ state }) => state !== 'missing');
  }

  async disk(): Promise<DiskSpace | null> {
    return await diskSpace(this.#options.folder);
  }

  async #start(launch: SandboxLaunch, signal: AbortSignal, create: boolean): Promise<void> {
    const { id } = launch;
    const files = this.#files(id);
    const { starter } = this.#ready();
    await this.#queue.run(id, async () => {
      const started = await starter.start(launch, signal, create);
      if (started !== null) {
        this.#watch(id, files, started);
      }
    });
  }

  /** Ends what runs, politely where there is time; nothing happens when there is nothing. */
  async #end(id: string, graceMs: number): Promise<void> {
    const known = this.#programs.get(id);
    // Of several processes of this host, another one may have started it since.
    const program =
      known !== undefined && isProgramAlive(known.record) ? known : await this.#find(this.#files(id));
    if (program === null) {
      return;
    }
    const ended = known?.ended ?? null;
    this.#ending.add(id);
    try {
      await terminateSandbox({ ...program, ended, marker: this.#marker(id), graceMs });
      await ended;
    } finally {
      this.#ending.delete(id);
    }
  }

  /** What the files say of a sandbox's program; null when there is no such sandbox. */
  async #find(files: SandboxFiles): Promise<Pick<TerminationInput, 'record' | 'user'> | null> {
    if (!(await files.exists())) {
      return null;
    }
    const { starter } = this.#ready();
    const [record, user] = await Promise.all([files.program(), starter.ownUser(files)]);
    return { record, user };
  }

  /** Writes down how a program ends as long as we see it, and then ends what it left behind. */
  #watch(id: string, files: SandboxFiles, started: StartedProgram): void {
    const { record, ended } = started;
    const write = async (): Promise<void> => {
      const text = JSON.stringify({ ...(await ended), run: record.run });
      const isWanted = this.#ending.has(id);
      // Where it cannot be written, how the program ended is not known, as after a restart of the service.
      await writeFile(files.paths.exit, text, { mode: 0o600 }).catch(() => undefined);
      if (this.#programs.get(id) === program) {
        this.#programs.delete(id);
      }
      if (isWanted) {
        return;
      }
      // Not the next start's, which another process may have begun already. What cannot be ended now is ended before
      // the next start, or with the sandbox.
      const marker = programMarker(this.#options.instanceId, id, record.run);
      await terminateSandbox({ record: null, ended: null, marker, user: null, graceMs: 0 }).catch(
        () => undefined,
      );
    };
    const program = { ...started, written: write() };
    this.#programs.set(id, program);
  }

  #files(id: string): SandboxFiles {
    if (!isSandboxId(id)) {
      throw new SandboxBackendError('The id of a sandbox consists of letters and digits.');
    }
    return new SandboxFiles(this.#options.folder, id);
  }

  #marker(id: string): string {
    return sandboxMarker(this.#options.instanceId, id);
  }

  #ready(): { isolation: ProcessIsolation; starter: ProgramLauncher } {
    if (this.#prepared === null) {
      throw new SandboxBackendError('The process backend is not prepared.');
    }
    return this.#prepared;
  }
}
