import { hash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { readProcesses } from '@slipway/common/processes/end-processes.js';
import { DiskGuard, diskSpace } from '../disk-guard.js';
import {
  type BackendSweep,
  type DiskSpace,
  type PreparationLine,
  type ProgramLaunch,
  requireMayStop,
  SandboxBackend,
  SandboxBackendError,
  type SandboxFacts,
  type SandboxLaunch,
  type WarmStarts,
  type WarmTemplate,
} from '../sandbox-backend.js';
import { AbandonedProbes } from './isolation-probe.js';
import { GuardedPrograms } from './guarded-programs.js';
import type { Platform } from './isolation.js';
import { Leftovers } from './tree-removal.js';
import { detectPlatform } from './platform.js';
import { portObstacle } from './proxy-port.js';
import type { ProcessBackendOptions, ProcessIsolation } from './process.options.js';
import {
  portAddresses,
  programAddress,
  programMarker,
  sandboxMarker,
  socketAddress,
} from './program-command.js';
import { ProgramLimits } from './program-limits.js';
import { ProgramLauncher, type StartedProgram } from './program-launcher.js';
import {
  isProgramAlive,
  parseBubblewrapStatus,
  parseExit,
  terminateSandbox,
  type TerminationInput,
} from './sandbox-program.js';
import {
  agentSocket,
  isFolderName,
  readIfExists,
  readLogTail,
  rotateLog,
  SandboxFiles,
  sandboxIds,
} from './sandbox-files.js';
import { detachNetwork, isNetworkLost } from './sandbox-network.js';

const GROUPS_EVERY_MS = 60_000;
const PROBES_EVERY_MS = 10_000;
const UNKNOWN_EXIT = { code: null, signal: 'SIGKILL', outOfMemory: false };

interface PreparedBackend {
  platform: Platform;
  proxyObstacle: string | null;
  launcher: ProgramLauncher;
  limits: ProgramLimits;
}

/** They outlive the service. All state is in their folders; pid, start time and boot id identify their processes. */
export class ProcessSandboxBackend extends SandboxBackend {
  readonly kind = 'process';
  override readonly warm: WarmStarts = {
    fingerprint: async (template) => await this.fingerprint(template),
    start: async (launch, signal) => await this.startProgram({ ...launch, sessionKey: null }, signal, true),
  };

  private readonly options: ProcessBackendOptions;
  private readonly leftovers: Leftovers;
  private readonly guarded: GuardedPrograms;
  private readonly guard: DiskGuard;
  private readonly queue = new KeyedLimit(1);
  private readonly programs = new Map<string, StartedProgram & { exitWritten: Promise<void> }>();
  private readonly terminating = new Set<string>();
  private readonly reconnecting = new Set<string>();
  private prepared: PreparedBackend | null = null;
  private groupsCheckedAt = -GROUPS_EVERY_MS;
  private readonly abandonedProbes: AbandonedProbes;
  private probesCheckedAt = -PROBES_EVERY_MS;
  private agentServerHash: string | null = null;

  constructor(options: ProcessBackendOptions) {
    super();
    this.options = options;
    this.leftovers = new Leftovers(options.folder);
    this.abandonedProbes = new AbandonedProbes(options);
    this.guarded = new GuardedPrograms(
      options,
      async (id, { run }) => (await this.prepared?.limits.members(id, run)) ?? null,
      async (id) => await this.queue.run(id, async () => await this.terminate(id, 0)),
    );
    const { minFreeBytes: reserveBytes, sandboxBytes } = options.fileLimits;
    const disk = 'the disk of DATA_DIR';
    this.guard = new DiskGuard({ disk, reserveBytes, sandboxBytes }, this.guarded);
  }

  /** @throws SandboxBackendError before `prepare` has found out */
  get isolation(): ProcessIsolation {
    return this.requirePrepared().platform.isolation;
  }

  override proxyObstacle(): string | null {
    return this.requirePrepared().proxyObstacle;
  }

  async prepare(): Promise<PreparationLine[]> {
    const { folder } = this.options;
    if (readProcesses() === null) {
      throw new SandboxBackendError(
        'SANDBOX_BACKEND: process sandboxes need Linux with /proc; use docker here.',
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o711 });
    const { platform, lines, networkObstacle } = await detectPlatform(this.options);
    const { limits, notice } = await ProgramLimits.detect(this.options, platform);
    this.prepared = {
      platform,
      limits,
      proxyObstacle: networkObstacle ?? (await portObstacle(this.options.egressPort)),
      launcher: new ProgramLauncher(this.options, platform, limits),
    };
    // A service that died while it measured them may have left them frozen.
    const running = await this.guarded.running();
    await Promise.all(running.map(async (id) => await this.guarded.thaw(id)));
    return [{ level: 'log', text: notice }, ...lines];
  }

  async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.startProgram(launch, signal, true);
  }

  async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.startProgram(launch, signal, false);
  }

  async inspect(id: string): Promise<SandboxFacts> {
    const files = this.files(id);
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
      await rotateLog(files.paths.log, this.options.fileLimits.logBytes);
      if (record.networked && (await isNetworkLost(files.paths, record.run))) {
        this.reconnect(id, files);
      }
      const { listenAddress } = this.options;
      const address =
        record.port === null
          ? socketAddress(agentSocket(files.paths))
          : programAddress(listenAddress, record.port);
      const ports = portAddresses(record, files.paths, listenAddress);
      return { ...nothing, state: 'running', address, ports, createdAt };
    }
    await detachNetwork(files.paths, record.run);
    await this.programs.get(id)?.exitWritten;
    const exit =
      parseBubblewrapStatus(await readIfExists(files.paths.status)) ??
      parseExit(await readIfExists(files.paths.exit), record);
    const explained = (await this.prepared?.limits.explain(id, record.run, exit)) ?? exit;
    const cause = await this.guarded.causeOf(files.paths, id, record);
    return {
      ...nothing,
      state: 'stopped',
      exit: cause === null ? explained : { ...(explained ?? UNKNOWN_EXIT), cause },
      createdAt,
    };
  }

  async logTail(id: string): Promise<string> {
    return await readLogTail(this.files(id).paths.log);
  }

  async pause(id: string, mayStop?: () => boolean): Promise<void> {
    await this.queue.run(id, async () => await this.terminate(id, this.options.graceMs, mayStop));
  }

  async remove(id: string): Promise<void> {
    await this.queue.run(id, async () => {
      await this.terminate(id, 0);
      await this.files(id).discard();
      this.guarded.forget(id);
      await this.leftovers.remove(id);
    });
  }

  async list(): Promise<SandboxFacts[]> {
    const { folder, instanceId, hostId } = this.options;
    const found = (await sandboxIds(folder)).map(async (id) => {
      const label = await this.files(id).label();
      const isOurs = label?.instanceId === instanceId && label.hostId === hostId;
      return isOurs ? [await this.inspect(id)] : [];
    });
    // A sandbox may have been removed meanwhile.
    return (await Promise.all(found)).flat().filter(({ state }) => state !== 'missing');
  }

  async disk(): Promise<DiskSpace | null> {
    return await diskSpace(this.options.folder);
  }

  override async sweep(): Promise<BackendSweep> {
    await this.guard.check(await this.disk());
    await this.leftovers.retry();
    await this.removeStaleGroups();
    await this.removeAbandonedProbes();
    return { leftovers: await this.leftovers.count(), notices: this.leftovers.takeNotices() };
  }

  /** A service that dies between a sandbox's end and its clean-up leaves its group. */
  private async removeStaleGroups(): Promise<void> {
    if (performance.now() < this.groupsCheckedAt + GROUPS_EVERY_MS) {
      return;
    }
    this.groupsCheckedAt = performance.now();
    await this.prepared?.limits.removeStale(async (id) =>
      isFolderName(id) ? ((await this.files(id).program())?.run ?? null) : null,
    );
  }

  private async removeAbandonedProbes(): Promise<void> {
    if (this.prepared !== null && performance.now() >= this.probesCheckedAt + PROBES_EVERY_MS) {
      this.probesCheckedAt = performance.now();
      await this.abandonedProbes.remove();
    }
  }

  private async fingerprint(template: WarmTemplate): Promise<string | null> {
    if (template.program.kind !== 'native') {
      return null;
    }
    const { agentServer } = this.options;
    // The entry names its bundle by content hash, so its own hash covers all files.
    this.agentServerHash ??= hash('sha256', await readFile(agentServer.entry, 'utf8'));
    const facts = [template, this.options, this.requirePrepared().platform, this.agentServerHash];
    return hash('sha256', JSON.stringify(facts));
  }

  private async startProgram(launch: ProgramLaunch, signal: AbortSignal, create: boolean): Promise<void> {
    const { id } = launch;
    const files = this.files(id);
    const { launcher } = this.requirePrepared();
    await this.queue.run(id, async () => {
      const started = await launcher.start(launch, signal, create);
      if (started !== null) {
        this.watchExit(id, files, started);
        // One that cannot be ended is connected when it is inspected.
        started.connected.catch(async (error: unknown) =>
          this.guarded.end(id, errorMessage(error)).catch(() => undefined),
        );
      }
    });
  }

  private async terminate(id: string, graceMs: number, mayStop?: () => boolean): Promise<void> {
    const known = this.programs.get(id);
    const program =
      known !== undefined && isProgramAlive(known.record) ? known : await this.find(this.files(id));
    if (program === null) {
      return;
    }
    requireMayStop(mayStop);
    const ended = known?.ended ?? null;
    this.terminating.add(id);
    try {
      const { limits } = this.requirePrepared();
      const files = this.files(id);
      const requireStart = async (): Promise<void> => await files.requireStart(program.record);
      await terminateSandbox({
        ...program,
        ended,
        marker: sandboxMarker(this.options.instanceId, id),
        graceMs,
        requireStart,
        seal: async () => await limits.seal(id),
      });
      await requireStart();
      await detachNetwork(files.paths, null);
      await ended;
      await limits.release(id);
    } finally {
      this.terminating.delete(id);
    }
  }

  private async find(files: SandboxFiles): Promise<Pick<TerminationInput, 'record' | 'user'> | null> {
    if (!(await files.exists())) {
      return null;
    }
    const { launcher } = this.requirePrepared();
    const [record, user] = await Promise.all([files.program(), launcher.exclusiveUser(files)]);
    return { record, user };
  }

  /** Reconnects in the background: a sandbox without a network still answers. */
  private reconnect(id: string, files: SandboxFiles): void {
    if (this.reconnecting.has(id)) {
      return;
    }
    this.reconnecting.add(id);
    void this.queue
      .run(id, async () => {
        const record = await files.program();
        if (record !== null && isProgramAlive(record)) {
          await this.requirePrepared().launcher.connect(id, files.paths, record);
        }
      })
      .catch(() => undefined)
      .finally(() => this.reconnecting.delete(id));
  }

  /** Records how a program ends, as long as this process lives, and then ends what it left behind. */
  private watchExit(id: string, files: SandboxFiles, started: StartedProgram): void {
    const { record, ended } = started;
    const writeExit = async (): Promise<void> => {
      const text = JSON.stringify({ ...(await ended), run: record.run });
      const isExpected = this.terminating.has(id);
      // An exit that cannot be written is unknown, as after a restart of the service.
      await writeFile(files.paths.exit, text, { mode: 0o600 }).catch(() => undefined);
      if (this.programs.get(id) === program) {
        this.programs.delete(id);
      }
      if (isExpected) {
        return;
      }
      // Another process may have begun the next start already, so only processes of this one are ended.
      const marker = programMarker(this.options.instanceId, id, record.run);
      await terminateSandbox({ record: null, ended: null, marker, user: null, graceMs: 0 }).catch(
        () => undefined,
      );
    };
    const program = { ...started, exitWritten: writeExit() };
    this.programs.set(id, program);
  }

  private files(id: string): SandboxFiles {
    if (!isFolderName(id)) {
      throw new SandboxBackendError('The id of a sandbox consists of letters and digits.');
    }
    return new SandboxFiles(this.options.folder, id);
  }

  private requirePrepared(): PreparedBackend {
    if (this.prepared === null) {
      throw new SandboxBackendError('The process backend is not prepared.');
    }
    return this.prepared;
  }
}
