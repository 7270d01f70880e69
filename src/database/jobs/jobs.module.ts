import { Module } from '@nestjs/common';
import { DatabaseNotificationsModule } from '../notifications/database-notifications.module.js';
import { DurableJobs } from './durable-jobs.js';

/** Jobs that survive the process that sent them. */
@Module({
  imports: [DatabaseNotificationsModule],
  providers: [DurableJobs],
  exports: [DurableJobs],
})
export class JobsModule {}
