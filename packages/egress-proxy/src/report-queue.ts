import { randomUUID } from 'node:crypto';
import { RepeatedWork, within } from '@slipway/common/async.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { type EgressReports, MAX_REPORTED, type ReportedCall, type ReportedRequest } from './protocol.js';
import { RefusedReportError, type ServiceConnection } from './service-connection.js';

const EVERY_MS = 1_000;
const MAX_SANDBOXES = 4_096;

interface Waiting {
  requests: ReportedRequest[];
  calls: ReportedCall[];
}

/** What sandboxes asked for, and what calls of models took, on its way to the service; of more than it takes, the oldest are dropped. */
export class ReportQueue {
  private readonly proxy = randomUUID();
  private readonly waiting = new Map<string, Waiting>();
  private readonly work: RepeatedWork;
  private lastCall = 0;
  private dropped = 0;

  constructor(private readonly service: Pick<ServiceConnection, 'report'>) {
    this.work = new RepeatedWork(
      EVERY_MS,
      () => this.send(),
      (error) => logLine('warn', 'failed to report requests', { error: errorWithCauses(error) }),
    );
  }

  /** Requests and calls that wait for the next report. */
  get size(): number {
    return [...this.waiting.values()].reduce((sum, waiting) => sum + sizeOf(waiting), 0);
  }

  start(): void {
    this.work.start();
  }

  add(sandbox: string, request: ReportedRequest): void {
    this.put(sandbox, { requests: [request], calls: [] });
  }

  addCall(sandbox: string, call: Omit<ReportedCall, 'number'>): void {
    this.lastCall += 1;
    this.put(sandbox, { requests: [], calls: [{ number: this.lastCall, ...call }] });
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
    let most = Infinity;
    while (due > 0 && this.waiting.size > 0) {
      const batch = this.takeBatch(most);
      const reports: EgressReports = {
        proxy: this.proxy,
        reports: batch.map(([sandbox, waiting]) => ({ sandbox, ...waiting })),
      };
      try {
        await this.service.report(reports);
        due -= batch.length;
      } catch (error) {
        const isRefused = error instanceof RefusedReportError;
        if (isRefused && batch.length === 1) {
          // It would be in the way of all others for ever.
          logLine('error', 'failed to report what the service refuses', {
            sandbox: batch[0]?.[0],
            error: error.message,
          });
          due -= 1;
          continue;
        }
        batch.forEach(([sandbox, waiting]) => this.putBack(sandbox, waiting));
        if (!isRefused) {
          throw error;
        }
        most = 1;
      }
    }
  }

  /** As many sandboxes as fit into one report of bounded size, at most `most`. */
  private takeBatch(most: number): [string, Waiting][] {
    const batch: [string, Waiting][] = [];
    let count = 0;
    for (const [sandbox, waiting] of this.waiting) {
      count += sizeOf(waiting);
      if (batch.length === most || (count > MAX_REPORTED && batch.length > 0)) {
        break;
      }
      batch.push([sandbox, waiting]);
    }
    batch.forEach(([sandbox]) => this.waiting.delete(sandbox));
    return batch;
  }

  private put(sandbox: string, { requests, calls }: Waiting): void {
    const waiting = this.waiting.get(sandbox) ?? { requests: [], calls: [] };
    waiting.requests.push(...requests);
    waiting.calls.push(...calls);
    this.bound(waiting.requests);
    this.bound(waiting.calls);
    this.waiting.set(sandbox, waiting);
    if (this.waiting.size > MAX_SANDBOXES) {
      const [[oldest, lost] = ['', waiting]] = this.waiting;
      this.waiting.delete(oldest);
      this.dropped += sizeOf(lost);
    }
  }

  /** Before what came meanwhile, since calls are counted in their order. */
  private putBack(sandbox: string, { requests, calls }: Waiting): void {
    const since = this.waiting.get(sandbox) ?? { requests: [], calls: [] };
    this.waiting.delete(sandbox);
    this.put(sandbox, { requests: [...requests, ...since.requests], calls: [...calls, ...since.calls] });
  }

  private bound(list: unknown[]): void {
    this.dropped += list.splice(0, Math.max(0, list.length - MAX_REPORTED)).length;
  }
}

function sizeOf({ requests, calls }: Waiting): number {
  return requests.length + calls.length;
}

/** Writes one line of JSON to standard error. Fields never hold a credential or an address with a query. */
export function logLine(
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })}\n`);
}
