import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Client } from 'pg';
import type { FakeServer } from '../../fakes/fake-server.js';
import type { FakeWorld } from '../../fakes/fake-world.js';
import type { GitHttpServer } from '../../fakes/git-http-server.js';
import type { ScriptedLlm } from '../../../packages/agent-server/test/fakes/scripted-llm.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { ApiClient } from '../../system/journeys/support/api-client.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import type { AttackedBackend } from '../attack.js';
import { reservedPort } from '../../support/reserved-port.js';
import { until } from '../../support/until.js';
import { podOfSandbox } from './attacked-cluster.js';
import { type BackendSetup, hasContainer, removeContainers, setupOf } from './backends.js';
import { Tenant } from './tenant.js';

/** Settings of a service that an attack has for itself. */
export interface ApartOptions {
  /** Variables of the service besides those of the backend. */
  environment?: Record<string, string>;
  /** Arguments of Node itself (`--max-old-space-size=256`). */
  nodeArgs?: string[];
  /** Where the model and the git server listen, if not where sandboxes of this backend reach them anyway. */
  host?: string;
  /** False: the tenants have none, where the attack is on the service alone; two of them take some seconds. */
  sandboxes?: boolean;
}

/** A running service with its own database, and two tenants. */
export class HostileWorld {
  private tenants: [Tenant, Tenant] | null = null;

  private constructor(
    readonly backend: AttackedBackend,
    private readonly journey: JourneyWorld,
    private readonly setup: BackendSetup,
    private readonly environment: Record<string, string>,
    private readonly nodeArgs: string[],
    private current: ServiceProcess,
  ) {}

  static async open(backend: AttackedBackend, options: ApartOptions = {}): Promise<HostileWorld> {
    const setup = await setupOf(backend);
    const environment = { ...setup.environment, ...options.environment };
    const nodeArgs = options.nodeArgs ?? [];
    const host = options.host ?? setup.host;
    // Where sandboxes have to reach the model and the git server, they may try the API of the git host, too.
    const githubHost = options.host ?? '127.0.0.1';
    const journey = await JourneyWorld.open({ embedded: true, host, githubHost });
    try {
      const service = await journey.start({ ...environment, ...(await setup.ofProcess?.()) }, nodeArgs);
      const world = new HostileWorld(backend, journey, setup, environment, nodeArgs, service);
      world.tenants = await world.createTenants(options.sandboxes ?? true);
      return world;
    } catch (error) {
      await closeJourney(backend, journey, setup);
      throw error;
    }
  }

  /** Who gets hurt. */
  get alice(): Tenant {
    return this.tenant(0);
  }

  /** Who attacks. */
  get bob(): Tenant {
    return this.tenant(1);
  }

  /** Speaks to the service with the administrator's key. */
  get admin(): ApiClient {
    return this.journey.admin;
  }

  /** The process that runs now: `pid`, `url`, `log`, `isRunning()`. */
  get service(): ServiceProcess {
    return this.current;
  }

  /** `http://127.0.0.1:PORT` of the service; another one after each restart. */
  get url(): string {
    return this.journey.url;
  }

  /** The service's `DATA_DIR`. */
  get dataDir(): string {
    return this.journey.dataDir;
  }

  /** The model that all tenants use; what it was sent, with headers, is in `requests`. */
  get llm(): ScriptedLlm {
    return this.journey.llm;
  }

  /** The git server behind `GITHUB_CLONE_URL`. */
  get git(): GitHttpServer {
    return this.journey.git;
  }

  /** The server behind `GITHUB_API_URL`. */
  get github(): FakeServer {
    return this.journey.github;
  }

  /** What the git host behind `GITHUB_API_URL` knows; its `token` opens it. */
  get hub(): FakeWorld {
    return this.journey.hub;
  }

  /** What processes of sandboxes have in `SLIPWAY_SANDBOX` and containers in their label. */
  get instanceId(): string {
    return this.journey.instanceId;
  }

  /** Processes of this machine that belong to a sandbox, found by a marker in their environment. */
  sandboxProcesses(sandboxId: string): number[] {
    return this.journey.sandboxProcesses(sandboxId);
  }

  /**
   * Pauses a sandbox and waits until nothing of it runs: its status says PAUSED as soon as it takes no more requests.
   */
  async pauseWhole(tenant: Tenant): Promise<void> {
    await tenant.pause();
    await until(async () => !(await this.runs(tenant.sandboxId)));
  }

  /** Whether anything of a sandbox runs: a process, its container, its pod. */
  async runs(sandboxId: string): Promise<boolean> {
    switch (this.backend) {
      case 'docker':
        return hasContainer(this.instanceId, sandboxId);
      case 'kubernetes':
        return (await podOfSandbox(this.instanceId, sandboxId)) !== null;
      case 'process':
      case 'unwrapped':
        return this.sandboxProcesses(sandboxId).length > 0;
    }
  }

  /** Runs one statement on the embedded database of the service. */
  async query(sql: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    const password = (await readFile(path.join(this.dataDir, 'postgres-password'), 'utf8')).trim();
    const names = { user: 'slipway', database: 'slipway' };
    const client = new Client({ ...names, host: path.join(this.dataDir, 'postgres'), password });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** A user without a sandbox, with the model in the settings. */
  async createUser(): Promise<ApiClient> {
    return this.journey.createUser();
  }

  /** Gives a tenant the token of the git host. */
  async giveToken(tenant: Tenant): Promise<void> {
    await this.journey.giveToken(tenant.client);
  }

  /** Milliseconds that the service needs to say that it is alive; null: it does not, within the time. */
  async pulse(timeoutMs = 60_000): Promise<number | null> {
    const before = performance.now();
    try {
      const response = await fetch(`${this.url}/health/live`, { signal: AbortSignal.timeout(timeoutMs) });
      await response.arrayBuffer();
      return response.ok ? performance.now() - before : null;
    } catch {
      return null;
    }
  }

  /** Ends the service with the signal (at once with SIGKILL, in order with SIGTERM) and starts it on the same data. */
  async restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (signal === 'SIGKILL' && this.current.isRunning()) {
      await this.journey.kill(this.current);
    } else {
      await this.journey.stop(this.current);
    }
    const ofProcess = await this.setup.ofProcess?.();
    this.current = await this.journey.start({ ...this.environment, ...ofProcess }, this.nodeArgs);
  }

  /** One more replica on the same database and folder, which ends with the world. Tenants keep speaking to the first. */
  async replica({ environment = {}, nodeArgs = [] }: ApartOptions = {}): Promise<ServiceProcess> {
    const { url } = this.journey;
    const ofProcess = await this.setup.ofProcess?.();
    const service = await this.journey.start({ ...this.environment, ...ofProcess, ...environment }, [
      ...this.nodeArgs,
      ...nodeArgs,
    ]);
    this.journey.url = url;
    return service;
  }

  /** Starts a service with a database and two tenants of its own, and removes it afterwards. */
  async apart<T>(options: ApartOptions, use: (world: HostileWorld) => Promise<T>): Promise<T> {
    const other = await HostileWorld.open(this.backend, {
      ...options,
      environment: { ...this.environment, ...options.environment },
    });
    try {
      return await use(other);
    } finally {
      await other.close();
    }
  }

  /** The same, at a port that sandboxes reach too: they reach no other of this machine. */
  async apartForSandboxes<T>(use: (world: HostileWorld) => Promise<T>): Promise<T> {
    const port = String(await reservedPort());
    return await this.apart({ environment: { PORT: port, SANDBOX_NETWORK_ALLOW: `127.0.0.1:${port}` } }, use);
  }

  /** Makes good what an attack has broken, as far as a new process and new sandboxes can. */
  async mend(): Promise<void> {
    if (!this.current.isRunning()) {
      await this.restart('SIGKILL');
    }
    await Promise.all(
      [this.alice, this.bob].map(async (tenant) => {
        if (!(await tenant.isWell())) {
          await tenant.renew();
        }
      }),
    );
  }

  async close(): Promise<void> {
    await closeJourney(this.backend, this.journey, this.setup);
  }

  private async createTenants(withSandbox: boolean): Promise<[Tenant, Tenant]> {
    const create = async (name: string) => Tenant.create(name, await this.journey.createUser(), withSandbox);
    // One after the other: an old engine sometimes refuses one of two containers that start at the same moment.
    return [await create('Alice'), await create('Bob')];
  }

  private tenant(index: 0 | 1): Tenant {
    if (this.tenants === null) {
      throw new Error('the tenants are not there yet');
    }
    return this.tenants[index];
  }
}

async function closeJourney(
  backend: AttackedBackend,
  journey: JourneyWorld,
  setup: BackendSetup,
): Promise<void> {
  // Attacks may show whatever they like; journeys look for secrets.
  await journey.close({ secretsMayShow: true });
  if (backend === 'docker') {
    await removeContainers(journey.instanceId);
  }
  await setup.close?.();
}
