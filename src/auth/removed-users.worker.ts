import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../config/app-config.js';
import { UserRepository } from './user.repository.js';

const EVERY_MS = 60_000;

/** Removes what was kept of removed users once its time is over. */
@Injectable()
export class RemovedUsersWorker extends BackgroundLoop {
  constructor(
    private readonly users: UserRepository,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {
    super(EVERY_MS, new Logger('Users'), 'failed to remove what was kept of removed users', 'warn');
  }

  /** Those that were removed before this moment, less the retention. */
  async work(): Promise<void> {
    const { removedUserRetentionSeconds: seconds } = this.config.database;
    await this.users.forgetRemoved(new Date(this.clock.now() - seconds * 1000));
  }
}
