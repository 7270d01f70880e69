import { Module, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';
import type { Lease } from '@slipway/database/leased-rows.js';
import { LeasedWork, LeasedWorker } from '@slipway/database/leased-worker.js';
import { DatabaseNotificationsModule } from './database-notifications.module.js';

/** Works from the start of the application until it stops, which is before requests in flight end. */
export abstract class ServiceLeasedWorker<Row extends Lease>
  extends LeasedWorker<Row>
  implements OnApplicationBootstrap, OnModuleDestroy
{
  onApplicationBootstrap(): void {
    this.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.stop();
  }
}

@Module({
  imports: [DatabaseNotificationsModule],
  providers: [
    {
      provide: LeasedWork,
      useFactory: (notifications: DatabaseNotifications, clock: Clock) =>
        new LeasedWork(notifications, clock),
      inject: [DatabaseNotifications, Clock],
    },
  ],
  exports: [LeasedWork],
})
export class LeasedWorkModule {}
