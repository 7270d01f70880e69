import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { endProcesses } from '@slipway/common/processes/end-processes.js';
import { ascending } from '@slipway/common/compare.js';
import { DATABASE_USER, dataFolderPaths, readPassword } from '@slipway/embedded-postgres/cluster.js';
import { connectionUrl } from '@slipway/embedded-postgres/embedded-postgres.js';
import { readPostmasterPid } from '../../../../packages/embedded-postgres/src/process-identity.js';
import { SOCKET_PORT } from '../../../../packages/embedded-postgres/src/unprivileged-user.js';
import { startFakeGithub } from '../../../fakes/fake-github.js';
import type { FakeServer } from '../../../fakes/fake-server.js';
import type { FakeWorld } from '../../../fakes/fake-world.js';
import { type GitHttpServer, startGitHttpServer } from '../../../fakes/git-http-server.js';
import { sampleWorld } from '../../../fakes/sample-world.js';
import { ScriptedLlm } from '../../../../packages/agent-server/test/fakes/scripted-llm.js';
import { type ServiceProcess, startServiceProcess } from '../../../support/service-process.js';
import { createTestDatabase, type TestDatabase } from '../../../support/test-database.js';
import { ApiClient, text } from './api-client.js';
import { PlantedSecrets } from './planted-secrets.js';
import { script } from './script.js';
import { SecretWatch } from './secret-watch.js';

const ENCRYPTION_KEYS = `journey:${Buffer.alloc(32, 3).toString('base64')}`;
/** What the model's provider wants; nothing in a sandbox may see it. */
export const LLM_KEY = `sk-of-a-journey-${randomBytes(9).toString('hex')}`;

/**
 * The built service as processes of their own, real sandboxes, a real git server, and what they talk to: everything of
 * it goes with `close`.
 */
export class JourneyWorld {
  /** Processes of sandboxes carry it. */
  readonly instanceId = `journey-${randomBytes(6).toString('hex')}`;
  /** Of the service that was started last. */
  url = '';
  adminKey: string;
  readonly secrets = new PlantedSecrets();
  private readonly watch = new SecretWatch(this.secrets);
  private readonly services = new Set<ServiceProcess>();
  private readonly logs: (readonly string[])[] = [];

  private constructor(
    readonly dataDir: string,
    /** Null: the service has its own, in its data folder. */
    private readonly database: TestDatabase | null,
    readonly llm: ScriptedLlm,
    readonly git: GitHttpServer,
    readonly github: FakeServer,
    readonly hub: FakeWorld,
    private readonly hostsFile: string | undefined,
  ) {
    this.adminKey = this.secrets.plant('administrator key');
    this.secrets.know('git token', hub.token);
    this.secrets.know('LLM key', LLM_KEY);
  }

  /**
   * @param embedded the service starts a database of its own in its data folder
   * @param database one that is there already, in place of one on the server of the tests
   * @param host address of this machine at which sandboxes reach the model and the git server
   * @param githubHost address of this machine at which the service reaches the API of the git host
   * @param hosts addresses by the names that the service and what it starts know them by; needs root
   */
  static async open({
    embedded = false,
    database = null as TestDatabase | null,
    host = '127.0.0.1',
    githubHost = '127.0.0.1',
    hosts = null as Record<string, string> | null,
  } = {}): Promise<JourneyWorld> {
    const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'journey-')));
    // Sandboxes run as other users where we are root.
    await chmod(folder, 0o711);
    const hostsFile = hosts === null ? undefined : path.join(folder, 'hosts');
    if (hostsFile !== undefined) {
      const lines = Object.entries({ localhost: '127.0.0.1', ...hosts }).map(
        ([name, at]) => `${at} ${name}\n`,
      );
      await writeFile(hostsFile, lines.join(''), { mode: 0o644 });
    }
    const hub: FakeWorld = { ...sampleWorld(), token: `git-token-${randomBytes(12).toString('hex')}` };
    return new JourneyWorld(
      path.join(folder, 'data'),
      embedded ? null : (database ?? (await createTestDatabase())),
      await ScriptedLlm.start(script, { host }),
      await startGitHttpServer(
        (presented) =>
          [hub.token, ...(hub.app?.issued.keys() ?? [])].some(
            (token) => presented === `x-access-token:${token}`,
          ),
        host,
      ),
      await startFakeGithub(hub, { host: githubHost }),
      hub,
      hostsFile,
    );
  }

  get admin(): ApiClient {
    return this.clientOf(this.adminKey);
  }

  /** Speaks to the service with a key that is there already. */
  clientOf(key: string): ApiClient {
    return new ApiClient(() => this.url, key, this.watch);
  }

  /** @throws Error when the service has its own database */
  get databaseUrl(): string {
    if (!this.database) {
      throw new Error('the database of the service is its own');
    }
    return this.database.url;
  }

  /**
   * Starts the service, on the same database and folder each time.
   *
   * @param onSpawn gets the process id before the service listens
   */
  async start(
    environment: Record<string, string> = {},
    nodeArgs: string[] = [],
    onSpawn: (pid: number) => void = () => undefined,
  ): Promise<ServiceProcess> {
    const service = await startServiceProcess({
      cwd: path.dirname(this.dataDir),
      nodeArgs,
      ...(this.hostsFile && { hostsFile: this.hostsFile }),
      onSpawn,
      environment: {
        ...(this.database && {
          DATABASE_URL: this.database.url,
          ENCRYPTION_KEYS,
          BOOTSTRAP_API_KEY: this.adminKey,
        }),
        DATABASE_POOL_SIZE: '8',
        DATA_DIR: this.dataDir,
        INSTANCE_ID: this.instanceId,
        RATE_LIMIT_PER_MINUTE: '0',
        LOG_REQUESTS: 'false',
        MAX_RUNNING_SANDBOXES: '20',
        GIT_REQUEST_TIMEOUT_SECONDS: '60',
        SUGGESTED_TASKS_TIMEOUT_SECONDS: '90',
        ALLOW_UNSANDBOXED: 'true',
        GITHUB_API_URL: this.github.origin,
        GITHUB_CLONE_URL: this.git.origin,
        ...environment,
        // What the sandboxes of a journey talk to is on this machine.
        SANDBOX_NETWORK_ALLOW: [new URL(this.llm.url).host, environment['SANDBOX_NETWORK_ALLOW'] ?? []]
          .flat()
          .join(','),
      },
    });
    this.services.add(service);
    this.logs.push(service.log);
    this.url = service.url;
    if (!this.database) {
      const key = await readFile(path.join(this.dataDir, 'api-key'), 'utf8');
      this.adminKey = this.secrets.know('administrator key', key.trim());
    }
    return service;
  }

  /** Every line that its services have printed. */
  get logLines(): string[] {
    return this.logs.flat();
  }

  /** Ends it as an outage does: at once. */
  async kill(service: ServiceProcess): Promise<void> {
    process.kill(service.pid, 'SIGKILL');
    await this.stop(service);
  }

  async stop(service: ServiceProcess): Promise<void> {
    this.services.delete(service);
    await service.stop();
  }

  /** A user with a model, ready to start conversations. */
  async createUser(settings: object = {}): Promise<ApiClient> {
    const email = `${randomBytes(6).toString('hex')}@example.com`;
    const userId = text(await this.admin.post('/api/v1/users', { email }), 'id');
    const issued = await this.admin.post('/api/v1/api-keys', { name: 'journey', user_id: userId });
    const key = this.secrets.know('API key', text(issued, 'key'));
    const client = new ApiClient(() => this.url, key, this.watch);
    const planted = { name: 'PLANTED_SECRET', value: this.secrets.plant('custom secret') };
    await client.post('/api/secrets', planted);
    await client.saveSettings({
      ...this.modelSettings(),
      search_api_key: this.secrets.plant('search key'),
      sandbox_api_key: this.secrets.plant('sandbox key'),
      ...settings,
    });
    return client;
  }

  /** The model of the journey, as a user sets it. */
  modelSettings(): Record<string, string> {
    return { llm_model: 'openai/gpt-4o', llm_base_url: this.llm.url, llm_api_key: LLM_KEY };
  }

  /** Gives a user the token of the git host. */
  async giveToken(user: ApiClient): Promise<void> {
    const tokens = { provider_tokens: { github: { token: this.hub.token } } };
    await user.post('/api/add-git-providers', tokens);
  }

  /** Runs one statement. */
  async query(sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: this.databaseUrl });
    await client.connect();
    try {
      const { rows } = await client.query<Record<string, unknown>>(sql, values);
      return rows;
    } finally {
      await client.end();
    }
  }

  /** Rows of a table. */
  async count(table: string): Promise<number> {
    const [row] = await this.query(`SELECT count(*)::integer AS rows FROM ${table}`);
    return Number(row?.['rows']);
  }

  /** Living processes of sandboxes: of one, or of all. */
  sandboxProcesses(sandboxId = ''): number[] {
    const marker = `SLIPWAY_SANDBOX=${this.instanceId}/${sandboxId}`;
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && environmentOf(name).some((entry) => entry.startsWith(marker)))
      .map(Number);
  }

  /** Names of the folders of sandboxes. */
  async sandboxFolders(): Promise<string[]> {
    return (await readdir(path.join(this.dataDir, 'sandboxes')).catch(() => [])).toSorted(ascending);
  }

  /**
   * @param secretsMayShow tests that make a tool show secrets say so
   * @throws Error at the end when a secret is where it must not be
   */
  async close({ secretsMayShow = false } = {}): Promise<void> {
    // A world that never started has nothing to look at.
    const lookForSecrets = !secretsMayShow && this.logs.length > 0;
    try {
      if (lookForSecrets) {
        this.watch.lookAtProcesses();
        await this.watch.lookAtDatabase(this.database?.url ?? (await embeddedDatabaseUrl(this.dataDir)));
      }
    } finally {
      await this.end();
    }
    if (lookForSecrets) {
      this.watch.lookAtModel(this.llm.requests);
      this.logs.forEach((lines) => this.watch.lookAtLog(lines));
      this.watch.lookAtFiles(this.dataDir);
    }
    await rm(path.dirname(this.dataDir), { recursive: true, force: true, maxRetries: 10 });
    const findings = lookForSecrets ? this.watch.findings() : [];
    if (findings.length > 0) {
      throw new Error(`secrets are where they must not be:\n${findings.join('\n')}`);
    }
  }

  private async end(): Promise<void> {
    await Promise.all([...this.services].map((service) => this.stop(service)));
    for (const id of await this.sandboxFolders()) {
      const marker = `SLIPWAY_SANDBOX=${this.instanceId}/${id}`;
      await endProcesses({ root: null, marker, user: null });
    }
    await this.llm.close();
    await this.git.close();
    await this.github.close();
    await this.database?.drop();
  }
}

/** @throws Error when it does not run */
async function embeddedDatabaseUrl(dataDir: string): Promise<string> {
  const paths = dataFolderPaths(dataDir);
  const running = await readPostmasterPid(paths.cluster);
  const password = await readPassword(paths.password);
  const host = running?.socketDirectory ?? null;
  if (host === null || password === null) {
    throw new Error('the database of the service does not run');
  }
  return connectionUrl({ host, port: SOCKET_PORT, user: DATABASE_USER, password, database: DATABASE_USER });
}

/** Processes end while they are looked at, and those of other users may not be read. */
function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
