import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { Client } from 'pg';
import type { DataSource, EntityManager } from 'typeorm';
import { errorStack } from '@slipway/common/errors/error-message.js';
import type { Log } from '@slipway/common/log.js';
import { DatabaseAddresses } from './database-addresses.js';

const CHANNEL = /^[a-z][a-z_]{0,62}$/;
/** A hung connection is noticed after at most this interval plus the statement timeout. */
const PROBE_MS = 15_000;
const QUERY_TIMEOUT_MS = 5_000;
const MIN_RECONNECT_MS = 50;
const MAX_RECONNECT_MS = 5_000;

interface Listener {
  onPayload: (payload: string) => void;
  onResync: () => void;
}

/**
 * PostgreSQL's NOTIFY between replicas. Notifications are hints: what is sent while the connection is down is lost, so
 * a new one tells listeners to look for themselves (`onResync`).
 */
export class DatabaseNotifications {
  private readonly listeners = new Map<string, Set<Listener>>();
  private readonly statements = pLimit(1);
  private client: Client | null = null;
  private running: Promise<void> | null = null;
  private readonly stopped = new AbortController();

  /** @param applicationName of the connection, in `pg_stat_activity` */
  constructor(
    private readonly addresses: DatabaseAddresses,
    private readonly logger: Log,
    private readonly applicationName: string,
  ) {}

  /** Returns what stops it. `onResync` is called when something may have been missed, also once at the beginning. */
  listen(
    channel: string,
    onPayload: (payload: string) => void,
    onResync: () => void = () => undefined,
  ): () => void {
    if (!CHANNEL.test(channel)) {
      throw new Error(`"${channel}" is not a channel name`);
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

  get isConnected(): boolean {
    return this.client !== null || this.running === null;
  }

  /** Notifies listeners once the surrounding transaction is committed. `payload` has less than 8,000 bytes. */
  async publish(
    connection: Pick<EntityManager | DataSource, 'query'>,
    channel: string,
    payload: string,
  ): Promise<void> {
    await connection.query('SELECT pg_notify($1, $2)', [channel, payload]);
  }

  /** Ends the connection; nothing is heard afterwards. */
  async close(): Promise<void> {
    this.stopped.abort();
    await this.running;
  }

  private async stayConnected(): Promise<void> {
    const { signal } = this.stopped;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.connectOnce(() => {
          failures = 0;
        });
      } catch (error) {
        if (!signal.aborted) {
          this.logger.warn('failed to listen for notifications', { error: String(error) });
        }
      }
      await reconnectDelay(failures, signal);
    }
  }

  private async connectOnce(onConnected: () => void): Promise<void> {
    const client = new Client({
      connectionString: this.addresses.direct.url,
      application_name: this.applicationName,
      connectionTimeoutMillis: QUERY_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
    });
    const ended = Promise.withResolvers<void>();
    client.on('error', ended.reject);
    client.on('end', ended.resolve);
    client.on('notification', ({ channel, payload = '' }) => this.emit(channel, payload));
    // It is awaited only below; until then a rejection must not count as unhandled.
    ended.promise.catch(() => undefined);
    const probe = setInterval(() => void this.execute(client, 'SELECT 1').catch(ended.reject), PROBE_MS);
    probe.unref();
    const { signal } = this.stopped;
    const stop = (): void => ended.resolve();
    signal.addEventListener('abort', stop);
    try {
      await client.connect();
      for (const channel of this.listeners.keys()) {
        await this.execute(client, `LISTEN ${channel}`);
      }
      this.client = client;
      onConnected();
      this.resyncAll();
      await ended.promise;
    } finally {
      this.client = null;
      clearInterval(probe);
      signal.removeEventListener('abort', stop);
      client.removeListener('error', ended.reject);
      // A connection that failed may emit further errors while it is closed.
      client.on('error', () => undefined);
      client.end().catch(() => undefined);
    }
  }

  /** A second LISTEN changes nothing, and once it is done nothing is missed any more. */
  private begin(client: Client, channel: string, listener: Listener): void {
    this.execute(client, `LISTEN ${channel}`).then(
      () => this.guarded(() => listener.onResync()),
      // The connection counts as dead, and the next one listens to every channel.
      (error: unknown) => client.emit('error', error instanceof Error ? error : new Error(String(error))),
    );
  }

  private async execute(client: Client, statement: string): Promise<void> {
    await this.statements(() => client.query(statement));
  }

  private emit(channel: string, payload: string): void {
    for (const listener of this.listeners.get(channel) ?? []) {
      this.guarded(() => listener.onPayload(payload));
    }
  }

  private resyncAll(): void {
    for (const listener of [...this.listeners.values()].flatMap((listeners) => [...listeners])) {
      this.guarded(() => listener.onResync());
    }
  }

  /** A listener that throws must not keep the next one from being called. */
  private guarded(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.logger.error('failed to call notification listener', errorStack(error));
    }
  }
}

/** Grows with each failure in a row; ends at once when `signal` aborts. */
async function reconnectDelay(failures: number, signal: AbortSignal): Promise<void> {
  const delayMs = Math.min(MAX_RECONNECT_MS, MIN_RECONNECT_MS * 2 ** failures);
  await delay(delayMs, undefined, { signal, ref: false }).catch((error: unknown) => {
    if (!signal.aborted) {
      throw error;
    }
  });
}
