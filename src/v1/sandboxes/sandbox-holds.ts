import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { Clock } from '../../common/clock.js';

const HOLD = `
  UPDATE sandboxes
  SET held_until = greatest(held_until, $2::timestamptz), last_activity_at = greatest(last_activity_at, $3::timestamptz)
  WHERE id = $1`;

/** Keeps sandboxes from being paused while something is done with them that their agent servers do not show. */
@Injectable()
export class SandboxHolds {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Not idle for so many seconds from now; an earlier, longer hold stays. */
  async hold(sandboxId: string, seconds: number): Promise<void> {
    const now = this.clock.now();
    await this.dataSource.query(HOLD, [sandboxId, new Date(now + seconds * 1000), new Date(now)]);
  }
}
