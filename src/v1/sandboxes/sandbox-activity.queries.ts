import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { DataSource } from 'typeorm';
import { Clock } from '../../common/clock.js';

/** A sandbox whose user sends many requests costs one write in this time. */
const WRITE_EVERY_MS = 5_000;
const MOST_REMEMBERED = 10_000;

const TOUCH = `
  UPDATE sandboxes
  SET traffic_at = $2, last_activity_at = greatest(last_activity_at, $2::timestamptz)
  WHERE id = $1 AND status = 'RUNNING' AND (traffic_at IS NULL OR traffic_at < $3)`;

/** Notes that users use their sandboxes. Asking for a status is no use. */
@Injectable()
export class SandboxActivity {
  private readonly logger = new Logger(SandboxActivity.name);
  private readonly written = new LRUCache<string, number>({ max: MOST_REMEMBERED });

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Its user did something. Not awaited by anybody: no request waits for this book-keeping. */
  touch(sandboxId: string): void {
    const now = this.clock.now();
    if (now - (this.written.get(sandboxId) ?? 0) < WRITE_EVERY_MS) {
      return;
    }
    this.written.set(sandboxId, now);
    this.dataSource
      .query(TOUCH, [sandboxId, new Date(now), new Date(now - WRITE_EVERY_MS / 2)])
      .catch((error: unknown) => {
        this.written.delete(sandboxId);
        this.logger.warn('activity was not written', { sandbox_id: sandboxId, error: String(error) });
      });
  }
}

const HOLD = `
  UPDATE sandboxes
  SET held_until = greatest(held_until, $2::timestamptz), last_activity_at = greatest(last_activity_at, $3::timestamptz)
  WHERE id = $1`;

/** Keeps sandboxes from being paused while something is done with them that their agent servers do not show. */
@Injectable()
export class SandboxKeepAlive {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Not idle for so many seconds from now; an earlier, longer hold stays. */
  async keepAlive(sandboxId: string, seconds: number): Promise<void> {
    const now = this.clock.now();
    await this.dataSource.query(HOLD, [sandboxId, new Date(now + seconds * 1000), new Date(now)]);
  }
}
