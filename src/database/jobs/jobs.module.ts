import { Module } from '@nestjs/common';
import { DatabaseNotificationsModule } from '../notifications/database-notifications.js';
import { DurableJobs } from './durable-jobs.js';

@Module({
  imports: [DatabaseNotificationsModule],
  providers: [DurableJobs],
  exports: [DurableJobs],
})
export class JobsModule {}
