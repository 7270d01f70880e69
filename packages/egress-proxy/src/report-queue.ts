import { RepeatedWork, within } from '@slipway/common/async.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { type EgressReports, MAX_REPORTED, type ReportedRequest } from './protocol.js';
import type { ServiceConnection } from './service-connection.js';

const EVERY_MS = 1_000;
const MAX_SANDBOXES = 4_096;

/** What sandboxes asked for, on its way to the service; of more than it takes, the oldest are dropped. */
export class ReportQueue {
  private readonly waiting = new Map<string, ReportedRequest[]>();
  private readonly work: RepeatedWork;
  private dropped = 0;

  constructor(private readonly service: Pick<ServiceConnection, 'report'>) {
    this.work = new RepeatedWork(
      EVERY_MS,
      () => this.send(),
      (error) => logLine('warn', 'failed to report requests', { error: errorWithCauses(error) }),
    );
  }

  /** Requests that wait for the next report. */
  get size(): number {
    return [...this.waiting.values()].reduce((sum, { length }) => sum + length, 0);
  }

  start(): void {
    this.work.start();
  }

  add(sandbox: string, request: ReportedRequest): void {
    const requests = this.waiting.get(sandbox) ?? [];
    requests.push(request);
    if (requests.length > MAX_REPORTED) {
      requests.shift();
      this.dropped += 1;
    }
    this.waiting.set(sandbox, requests);
    if (this.waiting.size > MAX_SANDBOXES) {
      const [[oldest, lost] = ['', []]] = this.waiting;
      this.waiting.delete(oldest);
      this.dropped += lost.length;
    }
  }

  /** Sends what waits, now. */
  async flush(): Promise<void> {
    await this.work.now();
  }

  /** Sends what still waits, unless that takes longer. */
  async stop(deadlineMs: number): Promise<void> {
    await within(deadlineMs, this.flush());
    await within(deadlineMs, this.work.stop());
    if (this.size > 0) {
      logLine('warn', 'requests not reported', { count: this.size });
    }
  }

  private async send(): Promise<void> {
    if (this.dropped > 0) {
      logLine('warn', 'reported requests dropped', { count: this.dropped });
      this.dropped = 0;
    }
    // What comes meanwhile waits for the next time: a busy sandbox must not keep the service storing.
    let due = this.waiting.size;
    while (due > 0 && this.waiting.size > 0) {
      const batch = this.takeBatch();
      due -= batch.length;
      const reports: EgressReports = {
        reports: batch.map(([sandbox, requests]) => ({ sandbox, requests })),
      };
      try {
        await this.service.report(reports);
      } catch (error) {
        this.putBack(batch);
        throw error;
      }
    }
  }

  /** As many sandboxes as fit into one report of bounded size. */
  private takeBatch(): [string, ReportedRequest[]][] {
    const batch: [string, ReportedRequest[]][] = [];
    let count = 0;
    for (const [sandbox, requests] of this.waiting) {
      count += requests.length;
      if (count > MAX_REPORTED && batch.length > 0) {
        break;
      }
      batch.push([sandbox, requests]);
    }
    batch.forEach(([sandbox]) => this.waiting.delete(sandbox));
    return batch;
  }

  private putBack(batch: readonly (readonly [string, ReportedRequest[]])[]): void {
    for (const [sandbox, requests] of batch) {
      const all = [...requests, ...(this.waiting.get(sandbox) ?? [])];
      this.dropped += Math.max(0, all.length - MAX_REPORTED);
      this.waiting.set(sandbox, all.slice(-MAX_REPORTED));
    }
  }
}

/** Writes one line of JSON to standard error. Fields never hold a credential or an address with a query. */
export function logLine(
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })}\n`);
}
