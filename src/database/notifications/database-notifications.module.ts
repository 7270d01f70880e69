import { Module } from '@nestjs/common';
import { DatabaseNotifications } from './database-notifications.js';

/** What replicas tell each other through the database. */
@Module({
  providers: [DatabaseNotifications],
  exports: [DatabaseNotifications],
})
export class DatabaseNotificationsModule {}
