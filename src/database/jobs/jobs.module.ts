import { Module } from '@nestjs/common';
import { DatabaseNotificationsModule } from '../notifications/database-notifications.js';
import { DurableJobs } from './durable-jobs.js';

/** Jobs that survive the process that sent them. */
@Module({
  imports: [DatabaseNotificationsModule],
  providers: [DurableJobs],
  exports: [DurableJobs],
})
export class JobsModule {}
