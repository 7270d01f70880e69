import { mkdtemp, chmod, rm, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { childrenOf, readProcess } from '@slipway/common/processes/end-processes.js';
import {
  connectionUrl,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '@slipway/embedded-postgres/embedded-postgres.js';
import {
  isPostmasterOf,
  readPostmasterPid,
} from '../../../packages/embedded-postgres/src/process-identity.js';
import { runMigrations } from '../../../src/database/data-source-options.js';
import { DatabaseProxy } from '../../support/database-proxy.js';
import { until } from '../../support/until.js';
import type { Outcome } from '../scenario.js';
import { ChaosWorld, statusOf } from './chaos-world.js';

/** A PostgreSQL that the service did not start and does not bring back. It writes to the disk before it acknowledges. */
export class ExternalPostgres {
  #server: EmbeddedPostgres;
  readonly #folder: string;

  private constructor(folder: string, server: EmbeddedPostgres) {
    this.#folder = folder;
    this.#server = server;
  }

  static async start(): Promise<ExternalPostgres> {
    const folder = await realpath(await mkdtemp(path.join(tmpdir(), 'chaos-postgres-')));
    // Under root the server runs as another user, who has to get in.
    await chmod(folder, 0o711);
    const server = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data') });
    await runMigrations(connectionUrl(server.connection));
    return new ExternalPostgres(folder, server);
  }

  get url(): string {
    return connectionUrl(this.#server.connection);
  }

  /** Ends the server at once, and does not start another one. */
  async kill(): Promise<void> {
    const cluster = await realpath(path.join(this.#folder, 'data/postgres'));
    const victim = (await readPostmasterPid(cluster))?.pid ?? 0;
    const sessions = childrenOf(victim);
    process.kill(victim, 'SIGKILL');
    // On a busy machine a session answers once more before it notices.
    await until(() => !isPostmasterOf(cluster, victim) && sessions.every((pid) => readProcess(pid) === null));
  }

  /** Starts it again on the same files; it recovers from its log. */
  async comeBack(): Promise<void> {
    this.#server = await startEmbeddedPostgres({ dataDir: path.join(this.#folder, 'data') });
  }

  /** Removes it with its files. */
  async drop(): Promise<void> {
    await this.#server.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Damage to the network between a service under load and its database. */
export async function underLoadBehindProxy(
  damage: (world: ChaosWorld, proxy: DatabaseProxy) => Promise<void>,
): Promise<Outcome> {
  const database = await ExternalPostgres.start();
  const proxy = await DatabaseProxy.start(database.url);
  const environment = { DATABASE_URL: proxy.urlOf(database.url) };
  try {
    // The world drops the database when it closes.
    return await ChaosWorld.with({ database, environment }, async (world) => {
      await world.start();
      return await world.underLoad(async () => damage(world, proxy));
    });
  } finally {
    await proxy.goAway();
  }
}

/**
 * What the service says while its database is away: 503 with Retry-After to requests, not ready, alive.
 *
 * @param answerMs how long an answer may take
 */
export async function lookAtOutage(world: ChaosWorld, answerMs: number): Promise<void> {
  const { problems } = world;
  const before = performance.now();
  const response = await fetch(`${world.url}/api/secrets`, {
    headers: { 'X-Session-API-Key': world.journey.adminKey },
  });
  await response.arrayBuffer();
  const took = performance.now() - before;
  const retryAfter = response.headers.get('retry-after');
  if (response.status !== 503 || retryAfter === null) {
    problems.push(
      `without the database a request was answered ${response.status}, Retry-After ${retryAfter}`,
    );
  }
  if (took > answerMs) {
    problems.push(`without the database an answer took ${Math.round(took)} ms`);
  }
  const [ready, live] = await Promise.all([
    statusOf(`${world.url}/health/ready`),
    statusOf(`${world.url}/health/live`),
  ]);
  if (ready !== 503 || live !== 200) {
    problems.push(`without the database readiness was ${ready} and liveness ${live}`);
  }
}
