import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { DataSource } from 'typeorm';
import { Clock } from '../../common/clock.js';

/** However many requests a user sends to a sandbox, they cost one write in this time. */
const WRITE_EVERY_MS = 5_000;
const MAX_REMEMBERED = 10_000;

const TOUCH = `
  UPDATE sandboxes
  SET traffic_at = $2, last_activity_at = greatest(last_activity_at, $2::timestamptz)
  WHERE id = $1 AND status = 'RUNNING' AND (traffic_at IS NULL OR traffic_at < $3)`;

const KEEP_ALIVE = `
  UPDATE sandboxes
  SET held_until = greatest(held_until, $2::timestamptz), last_activity_at = greatest(last_activity_at, $3::timestamptz)
  WHERE id = $1`;

/** Records what keeps sandboxes from counting as idle, besides what their agent servers say. */
@Injectable()
export class SandboxActivityRepository {
  private readonly logger = new Logger(SandboxActivityRepository.name);
  private readonly lastWrites = new LRUCache<string, number>({ max: MAX_REMEMBERED });

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Its user did something in it; asking for its status does not count. Returns at once: no request waits for this. */
  touch(sandboxId: string): void {
    const now = this.clock.now();
    if (now - (this.lastWrites.get(sandboxId) ?? 0) < WRITE_EVERY_MS) {
      return;
    }
    this.lastWrites.set(sandboxId, now);
    this.dataSource
      .query(TOUCH, [sandboxId, new Date(now), new Date(now - WRITE_EVERY_MS / 2)])
      .catch((error: unknown) => {
        this.lastWrites.delete(sandboxId);
        this.logger.warn('failed to record sandbox activity', {
          sandbox_id: sandboxId,
          error: String(error),
        });
      });
  }

  /** It is not idle for so many seconds from now; an earlier keep-alive that lasts longer stays. */
  async keepAlive(sandboxId: string, seconds: number): Promise<void> {
    const now = this.clock.now();
    await this.dataSource.query(KEEP_ALIVE, [sandboxId, new Date(now + seconds * 1000), new Date(now)]);
  }
}
