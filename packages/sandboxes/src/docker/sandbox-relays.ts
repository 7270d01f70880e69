import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { hostname, release } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { ContainerCreateOptions } from 'dockerode';
import {
  AGENT_PORT,
  AGENT_SERVER_FOLDER,
  AGENT_SERVER_NODE,
  AGENT_USER,
  demultiplexLog,
  INSTANCE_LABEL,
  isBuiltHere,
} from '../container-layout.js';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { makePrivateFolder } from '@slipway/common/private-folder.js';
import { AGENT_SERVER_FLAGS, authorityBundle, BUNDLE_VARIABLES } from '../launch-variables.js';
import { type EgressAccess, type ProgramLaunch, SandboxBackendError } from '../sandbox-backend.js';
import { hardened, sandboxName } from './container.js';
import type { DockerBackendOptions } from './docker.options.js';
import { callEngine, type EngineFacts, nullOnStatus, readEngineFacts } from './engine.js';
import { ensureImage, type FoundImage } from './images.js';

/** The sandbox whose network the container shares. */
const RELAY_LABEL = 'slipway.relay-of';
const RELAY = `${AGENT_SERVER_FOLDER}/agent-server/relay.main.js`;
const MEMORY = 128 * 1024 * 1024;
const PROCESSES = 64;
const LOOPBACK = '127.0.0.1';
/** Where the relay has the two folders. */
const OWN = '/run/sandbox';
const PROXIES = '/run/proxies';
/** Where containers of stock images have the authorities that they trust. */
const BUNDLE = '/etc/slipway-authorities.pem';
/** Addresses of sockets are not longer (unix(7)). */
const SOCKET_BYTES = 107;
const LAST_PORT = 65_535;
const ID_LENGTH = 22;
const ANSWERS_MS = 60_000;
const POLL_MS = 20;

type Mount = Pick<Docker.ContainerInspectInfo['Mounts'][number], 'Source' | 'Destination'>;

/** Others may have a network stack of their own, which no other container shares. */
const SHARED_NETWORKS = /^(runc|crun|nvidia)$/;

/**
 * Ways between the service and sandboxes that have none of their own to it: a second container in the network of the sandbox
 * leads from its loopback to the sockets of egress proxies, and from sockets in a folder of the service to its programs. The
 * sandbox itself has neither folder.
 */
export class SandboxRelays {
  private defaultRuntime: string | null = null;
  private found: string | null = 'the Docker engine has not been asked yet';

  constructor(
    private readonly docker: Docker,
    private readonly options: Pick<
      DockerBackendOptions,
      'instanceId' | 'defaultImage' | 'network' | 'socketFolder'
    >,
  ) {}

  /** Finds out whether sandboxes can have one. @throws SandboxBackendUnavailableError */
  async look(engine: EngineFacts, image: FoundImage | null): Promise<void> {
    this.defaultRuntime = engine.defaultRuntime;
    this.found = await this.reason(engine, image);
  }

  /** Why `look` found that a sandbox cannot have one, and what would help; null: it can. */
  obstacle(runtime: string | null): string | null {
    return this.runtimeObstacle(runtime) ?? this.found;
  }

  private runtimeObstacle(runtime: string | null): string | null {
    const used = path.basename(runtime ?? this.defaultRuntime ?? 'runc');
    return SHARED_NETWORKS.test(used)
      ? null
      : `no other container can share the network of one that the runtime ${used} runs: runc, crun and nvidia can`;
  }

  private async reason(
    { machine, isRemapped }: EngineFacts,
    image: FoundImage | null,
  ): Promise<string | null> {
    const { network, defaultImage } = this.options;
    if (image === null && isBuiltHere(defaultImage)) {
      // Sandboxes of other images start without it.
      return `the image ${defaultImage}, which the way to the egress proxy runs in, is missing: npm run image:agent-server -- --tag ${defaultImage}`;
    }
    if (image?.hasRelay === false) {
      return `the image ${defaultImage} is of an older version, which has no relay to the egress proxy: build it anew, or pull it`;
    }
    if (network === null && (machine.hostname !== hostname() || machine.kernel !== release())) {
      return 'the Docker engine is not on the machine of the service, so that sockets to the egress proxy do not reach it: run the service there, or in a container of that engine (docker-compose.yml)';
    }
    if (network === null && isRemapped) {
      return 'the Docker engine has other users in containers (userns-remap), which sockets to the egress proxy refuse: run the service in a container of it (docker-compose.yml)';
    }
    try {
      requireShort(this.socket('0'.repeat(ID_LENGTH), LAST_PORT));
      await this.engineFolder();
    } catch (error) {
      if (!(error instanceof SandboxBackendError)) {
        throw error;
      }
      return error.message;
    }
    return await makePrivateFolder(this.options.socketFolder).then(
      () => null,
      (error: unknown) => `the service cannot write to its DATA_DIR (${errorMessage(error)})`,
    );
  }

  /** Where the service reaches a port of the sandbox. */
  socket(id: string, port: number): string {
    return path.join(this.folder(id), `${port}.sock`);
  }

  /** Before the sandbox is started. @throws SandboxBackendError where it could have no relay */
  async require(launch: ProgramLaunch, { isOnlyWay }: EgressAccess, signal: AbortSignal): Promise<void> {
    const { network, runtime, onProgress } = launch;
    if (isOnlyWay && network !== null) {
      throw new SandboxBackendError(
        `rules say what this sandbox may reach, and its specification has it in the network ${network}, where they would not hold: take one of them away`,
      );
    }
    const obstacle = this.runtimeObstacle(runtime);
    if (obstacle !== null) {
      throw new SandboxBackendError(`rules and credentials outside cannot be kept: ${obstacle}`);
    }
    requireShort(this.socket(launch.id, LAST_PORT));
    const { defaultImage: image } = this.options;
    const requested = { image, isOurs: isBuiltHere(image) };
    await ensureImage(this.docker, requested, (line) => onProgress?.(line), signal);
  }

  /** Has programs of an image that is not ours trust the sandbox's authority, besides well-known ones. */
  async withAuthority(
    options: ContainerCreateOptions,
    { id, egress }: ProgramLaunch,
  ): Promise<ContainerCreateOptions> {
    const authority = egress?.authority ?? null;
    if (authority === null) {
      return options;
    }
    const file = this.bundle(id);
    await makePrivateFolder(this.options.socketFolder);
    await writeFile(file, authorityBundle(authority));
    await chmod(file, 0o644);
    const Source = path.join(await this.engineFolder(), path.basename(file));
    const { Env = [], HostConfig } = options;
    const specified = new Set(Env.map((variable) => variable.split('=', 1)[0]));
    const added = BUNDLE_VARIABLES.filter((name) => !specified.has(name)).map((name) => `${name}=${BUNDLE}`);
    return {
      ...options,
      Env: [...Env, ...added],
      HostConfig: {
        ...HostConfig,
        Mounts: [...(HostConfig?.Mounts ?? []), { Type: 'bind', Source, Target: BUNDLE, ReadOnly: true }],
      },
    };
  }

  /** Creates the relay of a container, which need not run yet. Repeatable. @throws SandboxBackendError */
  async create(launch: ProgramLaunch, egress: EgressAccess, container: string): Promise<void> {
    const network = `container:${container}`;
    if ((await this.find(launch.id))?.HostConfig.NetworkMode === network) {
      return;
    }
    await this.removeRelay(launch.id);
    const { socketFolder } = this.options;
    await makePrivateFolder(socketFolder);
    await makeFolder(this.folder(launch.id), 0o755);
    await makeFolder(proxyFolder(socketFolder), 0o755);
    const user = await this.user(this.folder(launch.id));
    const source = await this.engineFolder();
    await callEngine(
      `the relay to the egress proxy cannot be created; the engine has to see ${source}, the folder of the service's sockets`,
      () => this.docker.createContainer(this.relayOptions(launch, egress, { user, network, source })),
    );
  }

  /**
   * Starts the relay beside a container that has been started, and waits until it answers, unless the program has ended.
   * Repeatable. @throws SandboxBackendError
   */
  async connect(launch: ProgramLaunch, egress: EgressAccess, container: string): Promise<void> {
    try {
      await this.create(launch, egress, container);
      await callEngine('the relay to the egress proxy cannot be started', () =>
        nullOnStatus([304], this.docker.getContainer(relayName(launch.id)).start()),
      );
      await this.answers(launch.id);
    } catch (error) {
      const sandbox = await callEngine('the sandbox cannot be inspected', () =>
        nullOnStatus([404], this.docker.getContainer(container).inspect()),
      );
      if (sandbox?.State.Running === true) {
        throw error;
      }
    }
  }

  async remove(id: string): Promise<void> {
    await this.removeRelay(id);
    await rm(this.bundle(id), { force: true });
  }

  private async removeRelay(id: string): Promise<void> {
    await this.removeContainer(relayName(id));
    await rm(this.folder(id), { recursive: true, force: true });
  }

  /** Removes those whose sandbox does not run any more. */
  async sweep(isRunning: (id: string) => Promise<boolean>): Promise<void> {
    const label = [`${INSTANCE_LABEL}=${this.options.instanceId}`, RELAY_LABEL];
    const relays = await callEngine('the relays of sandboxes cannot be listed', () =>
      this.docker.listContainers({ all: true, filters: { label } }),
    );
    // One that is created waits for its sandbox.
    for (const { Id, Labels } of relays.filter(({ State }) => State !== 'created')) {
      if (!(await isRunning(Labels[RELAY_LABEL] ?? ''))) {
        await this.removeContainer(Id);
      }
    }
  }

  private relayOptions(
    { id, ports }: ProgramLaunch,
    { port, isOnlyWay }: EgressAccess,
    { user, network, source }: { user: string; network: string; source: string },
  ): ContainerCreateOptions {
    const inbound = isOnlyWay ? [...Object.values(ports), AGENT_PORT] : [AGENT_PORT];
    const relays = [
      `tcp:${LOOPBACK}:${port}=any:${PROXIES}`,
      ...inbound.map((inside) => `unix:${OWN}/${inside}.sock=tcp:${LOOPBACK}:${inside}`),
    ];
    return {
      name: relayName(id),
      Image: this.options.defaultImage,
      Entrypoint: [AGENT_SERVER_NODE, ...AGENT_SERVER_FLAGS, RELAY],
      Cmd: relays.flatMap((relay) => ['--relay', relay]),
      User: user,
      WorkingDir: '/',
      Labels: { [INSTANCE_LABEL]: this.options.instanceId, [RELAY_LABEL]: id },
      Healthcheck: { Test: ['NONE'] },
      HostConfig: {
        ...hardened({ memory: MEMORY, processes: PROCESSES }),
        // SELinux lets a container connect to no socket of the machine otherwise.
        SecurityOpt: ['no-new-privileges', 'label=disable'],
        NanoCpus: 1e9,
        RestartPolicy: { Name: 'on-failure' },
        NetworkMode: network,
        Mounts: [
          { Type: 'bind', Source: path.join(source, id), Target: OWN },
          { Type: 'bind', Source: proxyFolder(source), Target: PROXIES, ReadOnly: true },
        ],
      },
    };
  }

  /** The user in the container that is the owner of the folder outside, as sockets of others are refused. */
  private async user(folder: string): Promise<string> {
    const [uid, gid] = [process.getuid?.() ?? AGENT_USER, process.getgid?.() ?? AGENT_USER];
    if (uid === 0) {
      await chown(folder, AGENT_USER, AGENT_USER);
      return `${AGENT_USER}:${AGENT_USER}`;
    }
    const { isRootless } = await callEngine('the Docker engine cannot be used', () =>
      readEngineFacts(this.docker),
    );
    // Containers of one engine have the same users, whichever those are on its machine.
    return isRootless && this.options.network === null ? '0:0' : `${uid}:${gid}`;
  }

  /** What the agent server's own socket leads to may not listen yet: the relay does, and so the proxy is within reach. */
  private async answers(id: string): Promise<void> {
    const socket = this.socket(id, AGENT_PORT);
    for (
      const until = performance.now() + ANSWERS_MS;
      (await failureAt(socket)) !== null;
      await delay(POLL_MS)
    ) {
      const relay = await this.find(id);
      if (!relay?.State.Running || performance.now() > until) {
        const log = relay && (await this.docker.getContainer(relay.Id).logs({ stderr: true, tail: 5 }));
        throw new SandboxBackendError(
          `the service does not reach the relay to the egress proxy at ${socket}: it needs an engine on its own machine (not one in a virtual machine, as Docker Desktop has, nor with userns-remap), and the image ${this.options.defaultImage} of its own version. ${log === null ? '' : demultiplexLog(log)}`.trim(),
        );
      }
    }
  }

  private async find(id: string): Promise<Docker.ContainerInspectInfo | null> {
    return await callEngine('the relay of the sandbox cannot be inspected', () =>
      nullOnStatus([404], this.docker.getContainer(relayName(id)).inspect()),
    );
  }

  private async removeContainer(name: string): Promise<void> {
    // 409: another replica is about to.
    await callEngine('the relay of the sandbox cannot be removed', () =>
      nullOnStatus([404, 409], this.docker.getContainer(name).remove({ force: true, v: true })),
    );
  }

  private bundle(id: string): string {
    return `${this.folder(id)}.pem`;
  }

  private folder(id: string): string {
    return path.join(this.options.socketFolder, id);
  }

  /** The folder as the engine knows it: a service in a container has it on a volume, or on a folder of the machine. */
  private async engineFolder(): Promise<string> {
    const { network, socketFolder } = this.options;
    if (network === null) {
      return socketFolder;
    }
    const found = await callEngine("the service's own container cannot be found", async () => {
      const services = await this.docker.listContainers({ filters: { network: [network] } });
      return await Promise.all(
        services.map(({ Id }) => nullOnStatus([404], this.docker.getContainer(Id).inspect())),
      );
    });
    const folders = new Set(found.flatMap((service) => sourceOf(service?.Mounts ?? [], socketFolder) ?? []));
    const [folder] = folders;
    if (folder === undefined || folders.size > 1) {
      throw new SandboxBackendError(
        `rules about what sandboxes reach, and credentials outside of them, need DATA_DIR of the service's container on a volume, the same one in all replicas in the network ${network}: there are ${folders.size}`,
      );
    }
    return folder;
  }
}

/** Where a folder of a container is outside of it; null where it is the container's own. */
function sourceOf(mounts: readonly Mount[], folder: string): string | null {
  const above = mounts
    .map(({ Source, Destination }) => ({ Source, inner: path.relative(Destination, folder) }))
    .filter(({ inner }) => !inner.startsWith('..'))
    .toSorted((one, other) => one.inner.length - other.inner.length);
  return above[0] === undefined ? null : path.join(above[0].Source, above[0].inner);
}

function relayName(id: string): string {
  return `${sandboxName(id)}-relay`;
}

function proxyFolder(folder: string): string {
  return path.join(folder, 'proxies');
}

/** An address for one more egress proxy, in place of those that were killed. */
export async function newProxySocket(socketFolder: string): Promise<string> {
  await makePrivateFolder(socketFolder);
  const folder = proxyFolder(socketFolder);
  await makeFolder(folder, 0o755);
  for (const name of await readdir(folder)) {
    const socket = path.join(folder, name);
    // One that is busy fails otherwise.
    if ((await failureAt(socket)) === 'ECONNREFUSED') {
      await rm(socket, { force: true });
    }
  }
  return requireShort(path.join(folder, `${randomBytes(4).toString('hex')}.sock`));
}

function requireShort(socket: string): string {
  if (Buffer.byteLength(socket) > SOCKET_BYTES) {
    throw new SandboxBackendError(
      `rules about what sandboxes reach, and credentials outside of them, need a DATA_DIR with a shorter path: ${socket} has more than ${SOCKET_BYTES} characters`,
    );
  }
  return socket;
}

async function makeFolder(folder: string, mode: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, mode);
}

/** The code of the error by which a socket refuses connections; null where it takes them. */
async function failureAt(socket: string): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const connection = connect(socket, () => resolve(null)).on('error', (error) =>
    resolve(errorCode(error) ?? 'unknown'),
  );
  try {
    return await promise;
  } finally {
    connection.destroy();
  }
}
