import { hash } from 'node:crypto';
import Docker, { type ContainerInspectInfo } from 'dockerode';
import pRetry from 'p-retry';
import pLimit from 'p-limit';
import { allEnded, KeyedLimit } from '@slipway/common/async.js';
import {
  INSTANCE_LABEL,
  isBuiltHere,
  SANDBOX_LABEL,
  sandboxLayout,
  demultiplexLog,
  explainIncompatibleImage,
  lastLines,
} from '../container-layout.js';
import { DiskGuard, diskSpace, requireSpace } from '../disk-guard.js';
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
import { AgentServerVolumes, SandboxVolumes } from './volumes.js';
import {
  containerOptions,
  exposeImageVariables,
  hasMountedAgentServer,
  hasNoNetwork,
  mountAgentServer,
  volumeOwner,
  containerFacts,
  isRunning,
  sandboxName,
  type SandboxReach,
  sandboxReach,
  WARM_LABEL,
} from './container.js';
import type { DockerBackendOptions } from './docker.options.js';
import {
  callEngine,
  connectEngine,
  type EngineFacts,
  isLocalEngine,
  isSocketEngine,
  isTemporaryStartFailure,
  nullOnStatus,
  readEngineFacts,
  removeContainer,
  sendSessionKey,
} from './engine.js';
import { GuardedContainers } from './guarded-containers.js';
import { ensureImage, findImage } from './images.js';
import { InstanceNetwork } from './instance-network.js';
import { SandboxLinks } from './sandbox-links.js';
import { SandboxRelays } from './sandbox-relays.js';

const LOG_LINES = 50;
const LOG_CHARACTERS = 4000;
const MAX_INSPECTIONS = 8;

const DISK = 'the disk of the Docker engine';
const START_RETRIES = 3;
const START_RETRY_DELAY_MS = 200;

/** Runs sandboxes as containers of a Docker engine. The volume is the sandbox; each start makes a new container. */
export class DockerSandboxBackend extends SandboxBackend {
  readonly kind = 'docker';
  readonly isolation = 'container';
  override readonly warm: WarmStarts = {
    fingerprint: async (template) => await this.fingerprint(template),
    start: async (launch, signal) =>
      await this.queue.run(launch.id, () => this.run({ ...launch, sessionKey: null }, signal)),
  };

  private readonly options: DockerBackendOptions;
  private readonly docker: Docker;
  private readonly volumes: SandboxVolumes;
  private readonly agentServers: AgentServerVolumes;
  private readonly reach: SandboxReach;
  private readonly network: InstanceNetwork;
  /** Links services with sandboxes; null when sandboxes publish ports. */
  private readonly links: SandboxLinks | null;
  private readonly relays: SandboxRelays;
  private readonly guarded: GuardedContainers;
  private readonly guard: DiskGuard;
  private readonly queue = new KeyedLimit(1);
  private readonly inspections = pLimit(MAX_INSPECTIONS);
  private engine: EngineFacts | null = null;

  constructor(options: DockerBackendOptions) {
    super();
    this.options = options;
    this.docker = connectEngine(options.dockerHost);
    this.volumes = new SandboxVolumes(this.docker, options.instanceId);
    this.agentServers = new AgentServerVolumes(this.docker, options);
    this.reach = sandboxReach(options);
    this.network = new InstanceNetwork(this.docker, options.instanceId);
    const { network } = options;
    this.links = network === null ? null : new SandboxLinks(this.docker, { ...options, network });
    this.relays = new SandboxRelays(this.docker, options);
    this.guarded = new GuardedContainers(this.docker, options.instanceId);
    const { minFreeBytes: reserveBytes, sandboxBytes } = options;
    this.guard = new DiskGuard({ disk: DISK, reserveBytes, sandboxBytes }, this.guarded);
  }

  override proxyObstacle(runtime: string | null): string | null {
    return this.relays.obstacle(runtime);
  }

  override async prepare(): Promise<PreparationLine[]> {
    const { dockerHost, network, listenAddress, defaultImage } = this.options;
    if (network === null && listenAddress === null && !isLocalEngine(dockerHost)) {
      throw new SandboxBackendError(
        "DOCKER_HOST names another machine, on whose loopback sandboxes' ports would be out of reach: run the service in a container there, in a network that SANDBOX_DOCKER_NETWORK names",
      );
    }
    const engine = await this.engineFacts();
    if (network !== null) {
      await callEngine(`SANDBOX_DOCKER_NETWORK: the network ${network} is not there`, () =>
        this.docker.getNetwork(network).inspect(),
      );
      await this.links?.reconnect();
    }
    const lines = [
      `sandboxes are containers of Docker ${engine.version}, reached ${network === null ? 'on loopback' : `by name from the network ${network}`}`,
    ];
    await this.guarded.thawAll();
    const image = await findImage(this.docker, defaultImage);
    await this.relays.look(engine, image);
    if (image === null) {
      lines.push(
        `the image ${defaultImage} is missing: ${isBuiltHere(defaultImage) ? `npm run image:agent-server -- --tag ${defaultImage}` : 'the first start of a sandbox pulls it'}`,
      );
    }
    lines.push(...(await this.agentServers.removeStale(image?.id ?? null)));
    return lines.map((text) => ({ level: 'log', text }));
  }

  override async start(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.queue.run(launch.id, () => this.run(launch, signal));
  }

  override async resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void> {
    await this.queue.run(launch.id, async () => {
      if ((await this.volumes.createdAt(launch.id)) === null) {
        throw new SandboxBackendError(
          `the files of this sandbox are gone: the engine has no volume ${sandboxName(launch.id)} of ours`,
        );
      }
      await this.run(launch, signal);
    });
  }

  override async inspect(id: string): Promise<SandboxFacts> {
    const container = await this.find(id);
    if (container !== null) {
      const facts = containerFacts(container, this.reachOf(container));
      const cause = this.guarded.causeOf(container.Id);
      return cause === null || facts.exit === null ? facts : { ...facts, exit: { ...facts.exit, cause } };
    }
    const createdAt = await this.volumes.createdAt(id);
    const state = createdAt === null ? 'missing' : 'stopped';
    return { id, state, address: null, ports: {}, exit: null, createdAt };
  }

  override async logTail(id: string): Promise<string> {
    const container = await this.find(id);
    if (container === null) {
      return '';
    }
    const log = await callEngine('the output of the sandbox cannot be read', () =>
      this.docker.getContainer(container.Id).logs({ stdout: true, stderr: true, tail: LOG_LINES }),
    );
    const text = lastLines(`${demultiplexLog(log)}${container.State.Error}`, LOG_CHARACTERS);
    const explanation =
      container.State.Running || !hasMountedAgentServer(container)
        ? null
        : explainIncompatibleImage(text, container.Config.Image);
    return explanation === null ? text : `${text}${explanation}\n`;
  }

  override async pause(id: string, mayStop?: () => boolean): Promise<void> {
    await this.queue.run(id, async () => {
      const container = await this.find(id);
      if (container !== null) {
        requireMayStop(mayStop);
        await this.stop(container);
        await this.disconnectSandbox(id);
      }
    });
  }

  override async remove(id: string): Promise<void> {
    await this.queue.run(id, async () => {
      const container = await this.find(id);
      if (container !== null) {
        await this.stop(container);
        await this.removeContainer(container);
      }
      await this.disconnectSandbox(id);
      await this.volumes.remove(id);
    });
  }

  override async list(): Promise<SandboxFacts[]> {
    const label = [`${INSTANCE_LABEL}=${this.options.instanceId}`];
    const containers = await callEngine('the sandboxes cannot be listed', () =>
      this.docker.listContainers({ all: true, filters: { label } }),
    );
    // A volume without a container counts too: its container may be about to be created.
    const ids = new Set([
      ...containers.flatMap(({ Labels }) => Labels[SANDBOX_LABEL] ?? []),
      ...(await this.volumes.list()),
    ]);
    const facts = await Promise.all([...ids].map((id) => this.inspections(() => this.inspect(id))));
    return facts.filter(({ state }) => state !== 'missing');
  }

  override async disk(): Promise<DiskSpace | null> {
    if (!isSocketEngine(this.options.dockerHost)) {
      return null;
    }
    const { rootDir } = await this.engineFacts();
    return rootDir === null ? null : await diskSpace(rootDir);
  }

  override async sweep(): Promise<BackendSweep> {
    await this.guard.check(await this.disk());
    await this.relays.sweep(async (id) => {
      const container = await this.find(id);
      return container !== null && isRunning(container);
    });
    return await super.sweep();
  }

  /** Only our own agent server can wait for its key. Its image, or the one it is copied from, may be built anew. */
  private async fingerprint(template: WarmTemplate): Promise<string | null> {
    if (template.program.kind !== 'native') {
      return null;
    }
    const { defaultImage } = this.options;
    const names = [template.program.image ?? defaultImage, defaultImage];
    const images = names.map(async (name) => (await findImage(this.docker, name))?.id ?? null);
    return hash('sha256', JSON.stringify([template, this.options, await Promise.all(images)]));
  }

  /** Creates what is missing and starts the container. A running one that waits for its session key gets it. */
  private async run(launch: ProgramLaunch, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    let found = await this.find(launch.id);
    const isClosed = launch.egress?.isOnlyWay === true;
    if (found !== null && isRunning(found) && hasNoNetwork(found) !== isClosed) {
      // Rules have come or gone since an interrupted start has made it.
      await this.stop(found);
      await this.disconnectSandbox(launch.id);
      found = await this.find(launch.id);
    }
    if (found !== null && isRunning(found)) {
      const { sessionKey } = launch;
      await allEnded([
        this.reportShortfall(launch),
        sessionKey !== null &&
          found.Config.Labels[WARM_LABEL] !== undefined &&
          callEngine('the sandbox cannot be given its session key', () =>
            sendSessionKey(this.docker, found.Id, sessionKey),
          ),
        this.relay(launch, found.Id),
      ]);
      return;
    }
    await (launch.egress && this.relays.require(launch, launch.egress, signal));
    requireSpace(await this.disk(), this.options.minFreeBytes, DISK);
    const layout = sandboxLayout(launch, this.options.defaultImage);
    const isOurs = layout.image === this.options.defaultImage && isBuiltHere(layout.image);
    const onProgress = (line: string): void => launch.onProgress?.(line);
    const image = await ensureImage(this.docker, { image: layout.image, isOurs }, onProgress, signal);
    const agentServer =
      launch.program.kind === 'native' && !image.hasAgentServer
        ? await this.agentServers.source(layout.image, onProgress)
        : null;
    const engine = await this.reportShortfall(launch);
    signal.throwIfAborted();
    const createdAt = await this.volumes.create(launch.id);
    const isLinked = launch.network === null && !isClosed;
    if (isLinked) {
      await this.network.ensure();
    }
    const own = { ...this.options, ownNetwork: this.network.name };
    const plain = containerOptions(launch, layout, own, this.reach, engine, createdAt);
    const options =
      launch.program.kind === 'native'
        ? exposeImageVariables(plain, image.variables)
        : await this.relays.withAuthority(plain, launch);
    if (found !== null) {
      await this.removeContainer(found);
    }
    const container = await callEngine(
      `a container of the image ${layout.image} cannot be created`,
      async () => {
        if (agentServer === null) {
          return await this.docker.createContainer(options);
        }
        if (found === null || found.State.Status === 'created') {
          // No program has run on the volume yet.
          const owner = await this.docker.createContainer(volumeOwner(options, agentServer.image));
          await removeContainer(this.docker, owner.id);
        }
        return await this.docker.createContainer(mountAgentServer(options, agentServer.volume));
      },
    );
    if (isLinked) {
      await this.links?.connect(launch.id, container.id);
    }
    const start = async (): Promise<void> => {
      if (layout.keyOnStdin && launch.sessionKey !== null) {
        await sendSessionKey(this.docker, container.id, launch.sessionKey);
      }
      await container.start();
    };
    await allEnded([
      callEngine(
        `the image ${layout.image} cannot be started`,
        async () =>
          await pRetry(start, {
            retries: START_RETRIES,
            minTimeout: START_RETRY_DELAY_MS,
            shouldRetry: ({ error }) => isTemporaryStartFailure(error),
          }),
      ),
      launch.egress && this.relays.create(launch, launch.egress, container.id),
    ]);
    await this.relay(launch, container.id);
  }

  private async relay(launch: ProgramLaunch, container: string): Promise<void> {
    await (launch.egress && this.relays.connect(launch, launch.egress, container));
  }

  private async disconnectSandbox(id: string): Promise<void> {
    await this.relays.remove(id);
    await this.links?.remove(id);
  }

  private reachOf(container: ContainerInspectInfo): SandboxReach {
    const socket = (id: string, port: number): string => this.relays.socket(id, port);
    return hasNoNetwork(container) ? { by: 'socket', socket } : this.reach;
  }

  private async reportShortfall({ cpu, onShortfall }: ProgramLaunch): Promise<EngineFacts> {
    const engine = await this.engineFacts();
    if (cpu !== null && cpu > engine.processors) {
      onShortfall?.(
        `The engine has ${engine.processors} processors: the sandbox gets these instead of ${cpu}.`,
      );
    }
    return engine;
  }

  /** Returns null also for a container of another installation. */
  private async find(id: string): Promise<ContainerInspectInfo | null> {
    const container = await callEngine('the sandbox cannot be inspected', () =>
      nullOnStatus([404], this.docker.getContainer(sandboxName(id)).inspect()),
    );
    const isOurs = container?.Config.Labels[INSTANCE_LABEL] === this.options.instanceId;
    return container && isOurs ? container : null;
  }

  private async stop({ Id }: ContainerInspectInfo): Promise<void> {
    await callEngine('the sandbox cannot be stopped', () =>
      nullOnStatus([304, 404], this.docker.getContainer(Id).stop({ t: this.options.graceSeconds })),
    );
  }

  private async removeContainer({ Id }: ContainerInspectInfo): Promise<void> {
    await callEngine("the sandbox's container cannot be removed", () => removeContainer(this.docker, Id));
    this.guarded.forget(Id);
  }

  private async engineFacts(): Promise<EngineFacts> {
    this.engine ??= await callEngine('the Docker engine cannot be used', () => readEngineFacts(this.docker));
    return this.engine;
  }
}
