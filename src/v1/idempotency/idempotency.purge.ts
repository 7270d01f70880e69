import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { Clock } from '../../common/clock.js';
import { IdempotencyKey } from './idempotency-key.entity.js';
import { KEPT_MS } from './idempotency-limits.js';

const EVERY_MS = 3_600_000;

/** Forgets keys that stand for nothing any more, once an hour. */
@Injectable()
export class IdempotencyPurge implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(IdempotencyPurge.name);
  private timer: NodeJS.Timeout | undefined;

  constructor(
    @InjectRepository(IdempotencyKey) private readonly keys: Repository<IdempotencyKey>,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.purge().catch((error: unknown) => {
        this.logger.warn('old idempotency keys were not removed', { error: String(error) });
      });
    }, EVERY_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /** @returns how many were removed */
  async purge(): Promise<number> {
    const { affected } = await this.keys.delete({
      createdAt: LessThan(new Date(this.clock.now() - KEPT_MS)),
    });
    return affected ?? 0;
  }
}
