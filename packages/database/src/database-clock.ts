import type { DataSource } from 'typeorm';
import { RepeatedWork } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { Log } from '@slipway/common/log.js';
import { Clock } from '@slipway/common/clock.js';

const COMPARE_MS = 30_000;
/** The fastest query counts, because it is the most precise. */
const QUERIES = 3;
/** Smaller differences come from the network. */
const TOLERANCE_MS = 100;
/** A larger deviation means that the clock was set, or that the machine slept. */
const JUMP_MS = 1_000;

export interface MachineTime {
  /** Epoch milliseconds; may be set forward or back. */
  wall(): number;
  /** Milliseconds, never set; may stand still while the machine sleeps. */
  monotonic(): number;
}

const MACHINE_TIME: MachineTime = { wall: () => Date.now(), monotonic: () => performance.now() };

/** The time that replicas share for leases and deadlines, compared with the database's every half minute. */
export class DatabaseClock extends Clock {
  private readonly comparing = new RepeatedWork(
    COMPARE_MS,
    () => this.compare(),
    (error) => this.logger.warn('failed to compare clocks', { error: errorMessage(error) }),
  );
  /** Database's time minus monotonic time, milliseconds; null before the first comparison. */
  private ahead: number | null = null;
  /** Machine's clock minus monotonic time when it was last checked. */
  private wallAhead: number;

  constructor(
    private readonly dataSource: Pick<DataSource, 'query'>,
    private readonly logger: Log,
    private readonly time: MachineTime = MACHINE_TIME,
  ) {
    super();
    this.wallAhead = time.wall() - time.monotonic();
  }

  static async start(
    dataSource: Pick<DataSource, 'query'>,
    logger: Log,
    time?: MachineTime,
  ): Promise<DatabaseClock> {
    const clock = new DatabaseClock(dataSource, logger, time);
    await clock.compare();
    clock.comparing.start();
    return clock;
  }

  now(): number {
    const monotonic = this.time.monotonic();
    const wallAhead = this.time.wall() - monotonic;
    if (Math.abs(wallAhead - this.wallAhead) > JUMP_MS) {
      this.wallAhead = wallAhead;
      void this.comparing.now();
    }
    return Math.round(monotonic + (this.ahead ?? wallAhead));
  }

  async compare(): Promise<void> {
    const { ahead, uncertaintyMs } = await this.measure();
    if (this.ahead === null) {
      this.ahead = ahead;
      this.reportDifference(ahead);
      return;
    }
    const moved = ahead - this.ahead;
    if (Math.abs(moved) <= Math.max(TOLERANCE_MS, uncertaintyMs)) {
      return;
    }
    this.ahead = ahead;
    if (Math.abs(moved) > JUMP_MS) {
      this.logger.warn('clock of the database moved', { by_ms: Math.round(moved) });
      this.tellSet();
    }
  }

  async stop(): Promise<void> {
    await this.comparing.stop();
  }

  private reportDifference(ahead: number): void {
    const machineIsAheadMs = Math.round(this.wallAhead - ahead);
    if (Math.abs(machineIsAheadMs) > JUMP_MS) {
      this.logger.warn('clock of this machine differs from that of the database', {
        ahead_ms: machineIsAheadMs,
      });
    }
  }

  private async measure(): Promise<{ ahead: number; uncertaintyMs: number }> {
    let best = { ahead: 0, uncertaintyMs: Number.POSITIVE_INFINITY };
    for (let query = 0; query < QUERIES; query += 1) {
      const before = this.time.monotonic();
      const [row] = await this.dataSource.query<{ ms: number }[]>(
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float AS ms',
      );
      const uncertaintyMs = (this.time.monotonic() - before) / 2;
      if (row && uncertaintyMs < best.uncertaintyMs) {
        best = { ahead: row.ms - before - uncertaintyMs, uncertaintyMs };
      }
    }
    return best;
  }
}
