import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import type { DiskReserve, SupervisionReport } from './disk-reserve.js';

const LOOK_MS = 1_000;
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

/** Brings the embedded server back when the lease breaks, with growing pauses, and keeps the disk's reserve. */
export class PostmasterSupervisor {
  private readonly stopping = new AbortController();
  private readonly watch = new RepeatedWork(
    LOOK_MS,
    () => this.reserve.look(this.report),
    (error) => this.report('warn', 'failed to keep disk reserve', { error: errorMessage(error) }),
  );
  private report: SupervisionReport = () => undefined;
  private running: Promise<void> | null = null;

  /** @param lease the connection that shows our use of the server */
  constructor(
    private lease: Client,
    private readonly bringBack: () => Promise<Client>,
    private readonly reserve: DiskReserve,
  ) {}

  start(report: SupervisionReport): void {
    this.report = report;
    this.running ??= this.supervise().catch((error: unknown) => {
      this.report('error', 'failed to supervise embedded database', { error: errorStack(error) });
    });
    this.watch.start();
    void this.watch.now();
  }

  /** Returns the lease, which may have been lost. */
  async stop(): Promise<Client> {
    this.stopping.abort();
    await this.watch.stop();
    await this.running;
    return this.lease;
  }

  private async supervise(): Promise<void> {
    const { signal } = this.stopping;
    for (;;) {
      await untilEnded(this.lease, signal);
      if (signal.aborted) {
        return;
      }
      this.report('warn', 'connection to embedded database lost', {});
      // One that broke for another reason must not look like another client.
      this.lease.end().catch(() => undefined);
      await this.restore(signal);
    }
  }

  private async restore(signal: AbortSignal): Promise<void> {
    const lostAt = performance.now();
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        this.lease = await this.bringBack();
        const ms = Math.round(performance.now() - lostAt);
        this.report('log', 'embedded database is back', { attempt, ms });
        return;
      } catch (error) {
        const retryMs = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** (attempt - 1));
        this.report('error', 'failed to restart embedded database', {
          attempt,
          retry_ms: retryMs,
          free_bytes: await this.reserve.freeBytes().catch(() => null),
          error: errorMessage(error),
        });
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}

/** Settles when the connection has ended, perhaps before this call, or when `signal` aborts. */
async function untilEnded(client: Client, signal: AbortSignal): Promise<void> {
  const ended = Promise.withResolvers<void>();
  client.once('end', ended.resolve);
  signal.addEventListener('abort', () => ended.resolve(), { once: true });
  client.query('SELECT 1').catch(() => ended.resolve());
  await ended.promise;
}
