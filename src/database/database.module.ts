import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Global,
  Logger,
  Module,
  type OnModuleDestroy,
} from '@nestjs/common';
import { getDataSourceToken, TypeOrmModule } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { ConnectionWatch } from '@slipway/database/connection-watch.js';
import { DatabaseAddresses } from '@slipway/database/database-addresses.js';
import { DatabaseClock } from '@slipway/database/database-clock.js';
import { EncryptionKeyCheck, ServiceState, ServiceStateRepository } from './service-state.repository.js';
import { dataSourceOptions } from './data-source-options.js';
import { poolUse } from '@slipway/database/postgres-options.js';
import { StatementSpans } from '@slipway/database/named-statement.js';

/** Longer than the server's limit for a statement, so that only a connection that hangs reaches it. */
const QUERY_TIMEOUT_MS = 20_000;

@Global()
@Module({})
export class DatabaseModule implements OnModuleDestroy, BeforeApplicationShutdown {
  constructor(
    private readonly clock: Clock,
    private readonly watch: ConnectionWatch,
  ) {}

  static register(addresses: DatabaseAddresses, poolSize: number, traced = false): DynamicModule {
    const options = dataSourceOptions(addresses.main, poolSize);
    const subscribers = options.subscribers ?? [];
    const watch = new ConnectionWatch(addresses.main.url, new Logger('Database'));
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...options,
          subscribers: traced && Array.isArray(subscribers) ? [...subscribers, StatementSpans] : subscribers,
          extra: { ...options.extra, query_timeout: QUERY_TIMEOUT_MS, stream: watch.openSocket },
          autoLoadEntities: true,
          retryAttempts: 1,
        }),
        TypeOrmModule.forFeature([ServiceState]),
      ],
      providers: [
        { provide: DatabaseAddresses, useValue: addresses },
        {
          provide: Clock,
          useFactory: (dataSource: DataSource) =>
            DatabaseClock.start(dataSource, new Logger(DatabaseClock.name)),
          inject: [getDataSourceToken()],
        },
        {
          provide: ConnectionWatch,
          useFactory: (dataSource: DataSource) => watch.start(() => isUsed(dataSource)),
          inject: [getDataSourceToken()],
        },
        ServiceStateRepository,
        EncryptionKeyCheck,
      ],
      exports: [DatabaseAddresses, Clock, ServiceStateRepository],
    };
  }

  async onModuleDestroy(): Promise<void> {
    if (this.clock instanceof DatabaseClock) {
      await this.clock.stop();
    }
  }

  beforeApplicationShutdown(): void {
    this.watch.stop();
  }
}

/** Whether any statement, or any request for a connection, waits. */
function isUsed(dataSource: DataSource): boolean {
  const { busy, waiting } = poolUse(dataSource);
  return busy + waiting > 0;
}
