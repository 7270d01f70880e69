import { randomUUID } from 'node:crypto';
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { realpath, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { sendSignal } from '@slipway/common/processes/end-processes.js';
import { destinationsOf } from '@slipway/common/http/address-rules.js';
import { diskSpace, requireSpace } from '../disk-guard.js';
import { authorityBundle, foreignAuthority, proxyDestinations } from '../launch-variables.js';
import { type ProgramLaunch, SandboxBackendError } from '../sandbox-backend.js';
import {
  programWrapper,
  spawnIdentity,
  toolWrapper,
  type Platform,
  pickSandboxUser,
  isInRange,
} from './isolation.js';
import {
  closedNetwork,
  type NetworkRules,
  networkRules,
  resolverConfiguration,
  attachNetwork,
  type NetworkConnection,
} from './sandbox-network.js';
import {
  createKeyPipe,
  writeSessionKey,
  type SpawnedProgram,
  spawnProgram,
  isProgramAlive,
  type ProgramRecord,
  terminateSandbox,
} from './sandbox-program.js';
import { isShown, machineView } from './machine-view.js';
import { findProgram } from './platform.js';
import { freePort, PortReservations } from './port-reservations.js';
import type { ProcessBackendOptions } from './process.options.js';
import {
  LOOPBACK,
  needsAssignedPort,
  programCommand,
  programMarker,
  sandboxEnvironment,
  sandboxMarker,
  unsupportedOverrides,
  workspaceNames,
} from './program-command.js';
import {
  readIfExists,
  relativeWorkingDir,
  SandboxFiles,
  sandboxIds,
  type SandboxPaths,
} from './sandbox-files.js';
import type { ProgramLimits } from './program-limits.js';

/** A name that takes longer to resolve stays closed. */
const RESOLVE_TIMEOUT_MS = 2_000;

export interface StartedProgram extends SpawnedProgram {
  user: number | null;
  /** Rejects with a SandboxBackendError when the program runs and its network cannot be connected. */
  connected: Promise<void>;
}

export class ProgramLauncher {
  private readonly portReservations: PortReservations;

  constructor(
    private readonly options: ProcessBackendOptions,
    private readonly platform: Platform,
    private readonly limits: ProgramLimits,
  ) {
    this.portReservations = new PortReservations(options.folder, options.listenAddress ?? LOOPBACK);
  }

  /** Returns null when it already runs. `create` allows a new sandbox. @throws SandboxBackendError */
  async start(launch: ProgramLaunch, signal: AbortSignal, create: boolean): Promise<StartedProgram | null> {
    signal.throwIfAborted();
    const { folder, fileLimits, agentServer, environment, listenAddress } = this.options;
    const files = new SandboxFiles(folder, launch.id, relativeWorkingDir(launch.workingDir));
    const { paths } = files;
    const earlier = await files.program();
    if (earlier !== null && isProgramAlive(earlier)) {
      await this.connect(launch.id, paths, earlier);
      if (launch.sessionKey !== null) {
        await writeSessionKey(paths.keyPipe, launch.sessionKey);
      }
      this.reportShortfalls(launch);
      return null;
    }
    const host = listenAddress ?? LOOPBACK;
    const isolated = this.platform.isolation === 'bwrap';
    const rules = await this.networkRules(launch);
    const networked = rules !== null;
    const names = workspaceNames(paths, this.platform.isolation === 'bwrap' && this.platform.hasProject);
    const port = needsAssignedPort(launch.program, { networked, listenAddress })
      ? await freePort(host)
      : null;
    const { command, input } = programCommand({
      launch,
      paths,
      agentServer,
      toolWrapper:
        this.platform.isolation === 'bwrap'
          ? toolWrapper(this.platform.bwrap, paths, this.platform.hasProject)
          : [],
      names,
      host,
      port,
      rules,
    });
    requireSpace(await diskSpace(folder), fileLimits.minFreeBytes, 'the disk of DATA_DIR');
    if (isolated && launch.program.kind === 'command') {
      await requireShown(launch.program.command, this.options, launch.env['PATH'] ?? environment['PATH']);
    }
    const user = await this.prepareFiles(launch.id, files, earlier, create);
    const authority = foreignAuthority(launch);
    if (authority !== null) {
      await writeFile(paths.authorities, authorityBundle(authority), { mode: 0o644 });
    }
    const wrapper = await programWrapper(this.options, this.platform, paths, user, rules, authority !== null);
    if (networked) {
      await writeResolver(paths);
    }
    if (input.kind === 'key-pipe') {
      await createKeyPipe(paths.keyPipe);
    }
    this.reportShortfalls(launch);
    signal.throwIfAborted();
    const tmp = isolated ? '/tmp' : paths.tmp;
    const run = randomUUID();
    const marker = programMarker(this.options.instanceId, launch.id, run);
    const limited = await this.limits.apply(launch, run, this.exclusive(user));
    const spawnWith = async (ports: Record<string, number>): Promise<SpawnedProgram> =>
      await spawnProgram({
        command: [...limited, ...wrapper, ...command],
        cwd: isolated ? '/' : paths.box,
        env: sandboxEnvironment({
          serviceEnvironment: environment,
          launch,
          paths,
          workspace: names.workspace,
          tmp,
          marker,
          port,
          ports,
          host,
        }),
        input,
        identity: spawnIdentity(this.platform, user),
        paths,
        record: { run, port, ports, networked, namespaced: isolated },
      });
    if (!networked) {
      const ports = Object.keys(launch.ports);
      const spawned = await this.portReservations.reserve(launch.id, ports, spawnWith);
      return { ...spawned, user: this.exclusive(user), connected: Promise.resolve() };
    }
    const spawned = await spawnWith({ ...launch.ports });
    const { connected } = await this.connectProgram(launch.id, paths, spawned);
    return { ...spawned, user: this.exclusive(user), connected };
  }

  /** Connects a running program to its network, unless it is connected or shares the machine's. */
  async connect(id: string, paths: SandboxPaths, record: ProgramRecord): Promise<void> {
    if (record.networked) {
      await (
        await this.attachNetwork(id, paths, record, new AbortController().signal)
      ).connected;
    }
  }

  private reportShortfalls(launch: ProgramLaunch): void {
    const isHeld = (resource: 'cpu' | 'memory'): boolean => this.limits.holds(resource);
    unsupportedOverrides(launch, isHeld).forEach((sentence) => launch.onShortfall?.(sentence));
  }

  /** Connects it beside the program's start: our agent server answers before it has a network, others wait for it. */
  private async connectProgram(
    id: string,
    paths: SandboxPaths,
    { record, ended }: SpawnedProgram,
  ): Promise<NetworkConnection> {
    const gone = new AbortController();
    void ended.then(() => gone.abort());
    try {
      const { connected } = await this.attachNetwork(id, paths, record, gone.signal);
      return { connected: connected.catch((error: unknown) => throwIfAlive(record, error)) };
    } catch (error) {
      if (gone.signal.aborted) {
        return { connected: Promise.resolve() };
      }
      sendSignal(-record.pid, 'SIGKILL');
      throw error;
    }
  }

  private async attachNetwork(
    id: string,
    paths: SandboxPaths,
    { pid, run }: ProgramRecord,
    signal: AbortSignal,
  ): Promise<NetworkConnection> {
    if (this.platform.isolation !== 'bwrap' || this.platform.network === null) {
      return { connected: Promise.resolve() };
    }
    const { network } = this.platform;
    const marker = programMarker(this.options.instanceId, id, run);
    return await attachNetwork({ paths, network, pid, run, marker, signal });
  }

  /** @throws SandboxBackendError where what it may reach is restricted, and cannot be */
  private async networkRules({ callbackUrl, egress }: ProgramLaunch): Promise<NetworkRules | null> {
    if (this.platform.isolation !== 'bwrap' || this.platform.network === null) {
      if (egress !== undefined) {
        throw new SandboxBackendError(
          'The sandbox cannot be started: rules (SANDBOX_EGRESS) and credentials outside of it (SANDBOX_CREDENTIALS) need a network of its own, which bubblewrap and slirp4netns give it. Ask the operator.',
        );
      }
      return null;
    }
    const { allow } = this.options.network;
    const callback = callbackUrl === null ? [] : destinationsOf(callbackUrl);
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    const addresses = own.map(({ address }) => address);
    const rules = await networkRules([...allow, ...callback], addresses, resolveBriefly);
    if (egress === undefined) {
      return rules;
    }
    if (!egress.isOnlyWay) {
      return { ...rules, loopbackPorts: [...new Set([...rules.loopbackPorts, egress.port])] };
    }
    const proxies = await networkRules(proxyDestinations(this.options.environment), [], resolveBriefly);
    return closedNetwork(rules, { proxyPort: egress.port, without: proxies.loopbackPorts });
  }

  /** The user that only this sandbox runs as; null when it has none of its own. */
  async exclusiveUser(files: SandboxFiles): Promise<number | null> {
    return this.platform.users === null ? null : this.exclusive(await files.owner());
  }

  private exclusive(owner: number | null): number | null {
    const { users } = this.platform;
    return users !== null && owner !== null && isInRange(owner, users) ? owner : null;
  }

  private async prepareFiles(
    id: string,
    files: SandboxFiles,
    earlier: ProgramRecord | null,
    create: boolean,
  ): Promise<number | null> {
    const { instanceId, hostId } = this.options;
    const existed = await files.exists();
    if (!existed && !create) {
      throw new SandboxBackendError('The sandbox cannot be resumed: its files are gone.');
    }
    if (earlier === null) {
      const label = (await files.label()) ?? { instanceId, hostId, createdAt: Date.now() };
      await files.create(label, await this.newUser(id));
    }
    if (existed) {
      // Ends leftovers of a program that died, or of a start that was interrupted before it was recorded.
      const marker = sandboxMarker(instanceId, id);
      const user = await this.exclusiveUser(files);
      const requireStart = async (): Promise<void> => await files.requireStart(earlier);
      await terminateSandbox({ record: null, ended: null, marker, user, graceMs: 0, requireStart });
      await this.limits.release(id);
    }
    await files.clearReports();
    const user = await this.userOf(files);
    await files.createShared(user);
    return user;
  }

  /** A sandbox that was created before the service became root keeps its user. */
  private async userOf(files: SandboxFiles): Promise<number | null> {
    if (this.platform.users === null) {
      return null;
    }
    const owner = await files.owner();
    if (owner === 0) {
      throw new SandboxBackendError('The sandbox cannot be started: its files belong to root.');
    }
    return owner;
  }

  private async newUser(id: string): Promise<number | null> {
    const { folder } = this.options;
    if (this.platform.users === null) {
      return null;
    }
    const others = (await sandboxIds(folder)).filter((other) => other !== id);
    const owners = others.map(async (other) => await new SandboxFiles(folder, other).owner());
    const taken = (await Promise.all(owners)).filter((owner) => owner !== null);
    return pickSandboxUser(id, this.platform.users, new Set(taken));
  }
}

function throwIfAlive(record: ProgramRecord, error: unknown): void {
  if (isProgramAlive(record)) {
    throw error;
  }
}

async function resolveBriefly(hostname: string): Promise<LookupAddress[]> {
  return await Promise.race([
    lookup(hostname, { all: true, family: 4 }),
    delay(RESOLVE_TIMEOUT_MS, [], { ref: false }),
  ]);
}

/** The machine's own name servers may be out of reach of the sandbox. */
async function writeResolver(paths: SandboxPaths): Promise<void> {
  const machine = await readIfExists('/etc/resolv.conf');
  await writeFile(paths.resolver, resolverConfiguration(machine), { mode: 0o644 });
}

async function requireShown(
  command: string,
  options: ProcessBackendOptions,
  searchPath: string | undefined,
): Promise<void> {
  const program = await findProgram(command, searchPath);
  if (program !== null && !isShown(await machineView(options, null), await realpath(program))) {
    throw new SandboxBackendError(
      `The sandbox cannot be started: process sandboxes do not see its command ${program}. Name the folder that it is installed in in SANDBOX_READ_PATHS.`,
    );
  }
}
