import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Client } from 'pg';
import { DataSource, type EntityManager } from 'typeorm';
import { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { KeyedQueue } from '../../common/async.js';
import { errorStack } from '../../common/errors/error-message.js';

const CHANNEL = /^[a-z][a-z_]{0,62}$/;
/** A connection that hangs is noticed after at most this and the time that an answer may take. */
const PROBE_MS = 15_000;
const ANSWER_TIMEOUT_MS = 5_000;

interface Listener {
  onPayload: (payload: string) => void;
  onResync: () => void;
}

/**
 * What replicas tell each other, through PostgreSQL's NOTIFY. One connection of its own per process, opened with the
 * first listener, so the pool keeps its size. Notifications are hints: what is sent while the connection is away is
 * lost, so after a new connection every listener is told to look for itself (`onResync`).
 */
@Injectable()
export class DatabaseNotifications implements OnApplicationShutdown {
  private readonly logger = new Logger(DatabaseNotifications.name);
  private readonly listeners = new Map<string, Set<Listener>>();
  /** The connection takes one statement at a time. */
  private readonly statements = new KeyedQueue();
  private client: Client | null = null;
  private running: Promise<void> | null = null;
  private readonly stopped = new AbortController();

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Hears of everything that is published on a channel, here and elsewhere.
   *
   * @param channel lower-case letters and underscores
   * @param onResync called when something may have been missed, also once when listening has begun
   * @returns how to stop it
   */
  listen(
    channel: string,
    onPayload: (payload: string) => void,
    onResync: () => void = () => undefined,
  ): () => void {
    if (!CHANNEL.test(channel)) {
      throw new Error(`"${channel}" is no name of a channel`);
    }
    const listener = { onPayload, onResync };
    const listeners = this.listeners.get(channel) ?? new Set<Listener>();
    this.listeners.set(channel, listeners.add(listener));
    this.running ??= this.stayConnected();
    if (this.client !== null) {
      this.begin(this.client, channel, listener);
    }
    return () => {
      listeners.delete(listener);
    };
  }

  /**
   * Tells all listeners of a channel, once the transaction that it is part of is committed.
   *
   * @param payload less than 8,000 bytes
   */
  async publish(
    connection: Pick<EntityManager | DataSource, 'query'>,
    channel: string,
    payload: string,
  ): Promise<void> {
    await connection.query('SELECT pg_notify($1, $2)', [channel, payload]);
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async stayConnected(): Promise<void> {
    const { signal } = this.stopped;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.connectOnce(() => {
          failures = -1;
        });
      } catch (error) {
        if (!signal.aborted) {
          this.logger.warn('the connection for notifications failed', { error: String(error) });
        }
      }
      await reconnectDelay(failures + 1, signal);
    }
  }

  /** Resolves or rejects when the connection has ended. */
  private async connectOnce(connected: () => void): Promise<void> {
    const client = new Client({
      connectionString: urlOf(this.dataSource),
      application_name: 'slipway notifications',
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      keepAlive: true,
    });
    const ended = Promise.withResolvers<void>();
    client.on('error', ended.reject);
    client.on('end', ended.resolve);
    client.on('notification', ({ channel, payload = '' }) => this.tell(channel, payload));
    // Whoever awaits it comes later; a failure before that is not unhandled.
    ended.promise.catch(() => undefined);
    const probe = setInterval(() => void this.say(client, 'SELECT 1').catch(ended.reject), PROBE_MS);
    probe.unref();
    const { signal } = this.stopped;
    signal.addEventListener('abort', () => ended.resolve(), { once: true });
    try {
      await client.connect();
      for (const channel of this.listeners.keys()) {
        await this.say(client, `LISTEN ${channel}`);
      }
      this.client = client;
      connected();
      this.resyncAll();
      await ended.promise;
    } finally {
      this.client = null;
      clearInterval(probe);
      client.removeListener('error', ended.reject);
      // A connection that failed may still complain while it is taken down.
      client.on('error', () => undefined);
      client.end().catch(() => undefined);
    }
  }

  /** Listening twice is listening once, and the answer tells that nothing is missed from now on. */
  private begin(client: Client, channel: string, listener: Listener): void {
    this.say(client, `LISTEN ${channel}`).then(
      () => this.guarded(() => listener.onResync()),
      // The connection is taken for dead, and the next one listens to every channel.
      (error: unknown) => client.emit('error', error instanceof Error ? error : new Error(String(error))),
    );
  }

  private async say(client: Client, statement: string): Promise<void> {
    await this.statements.run('', async () => await client.query(statement));
  }

  private tell(channel: string, payload: string): void {
    for (const listener of this.listeners.get(channel) ?? []) {
      this.guarded(() => listener.onPayload(payload));
    }
  }

  private resyncAll(): void {
    for (const listener of [...this.listeners.values()].flatMap((listeners) => [...listeners])) {
      this.guarded(() => listener.onResync());
    }
  }

  /** One listener's failure is not the next one's. */
  private guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.logger.error('a listener failed', errorStack(error));
    }
  }
}

function urlOf({ driver }: DataSource): string {
  const url = driver instanceof PostgresDriver ? driver.options.url : undefined;
  if (url === undefined) {
    throw new Error('notifications need PostgreSQL and its URL');
  }
  return url;
}

/** What replicas tell each other through the database. */
@Module({
  providers: [DatabaseNotifications],
  exports: [DatabaseNotifications],
})
export class DatabaseNotificationsModule {}

const SHORTEST_MS = 50;
const LONGEST_MS = 5_000;

/** Waits before another attempt: longer with each failure in a row (50 ms to 5 s), not at all once `signal` aborts. */
async function reconnectDelay(failures: number, signal: AbortSignal): Promise<void> {
  const delay = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** Math.min(failures - 1, 10));
  try {
    await wait(delay, undefined, { signal, ref: false });
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}
