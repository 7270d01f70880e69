import { Logger, Module, type OnApplicationShutdown } from '@nestjs/common';
import { DatabaseAddresses } from '@slipway/database/database-addresses.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import { APPLICATION_NAME } from './data-source-options.js';

@Module({
  providers: [
    {
      provide: DatabaseNotifications,
      useFactory: (addresses: DatabaseAddresses) =>
        new DatabaseNotifications(
          addresses,
          new Logger(DatabaseNotifications.name),
          `${APPLICATION_NAME} notifications`,
        ),
      inject: [DatabaseAddresses],
    },
  ],
  exports: [DatabaseNotifications],
})
export class DatabaseNotificationsModule implements OnApplicationShutdown {
  constructor(private readonly notifications: DatabaseNotifications) {}

  async onApplicationShutdown(): Promise<void> {
    await this.notifications.close();
  }
}
