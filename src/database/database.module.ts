import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { EncryptionKeyCheck } from './encryption-key-check.js';
import { dataSourceOptions } from './open-database.js';
import { ServiceState } from './service-state.entity.js';
import { ServiceStateRepository } from './service-state.repository.js';

/** Longer than the server's own limit for a statement, so that only a server that hangs reaches it. */
const QUERY_TIMEOUT_MS = 20_000;

/** The data source; features add their entities with `TypeOrmModule.forFeature`. */
@Module({})
export class DatabaseModule {
  static register(url: string, poolSize: number): DynamicModule {
    const options = dataSourceOptions(url, poolSize);
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...options,
          extra: { ...options.extra, query_timeout: QUERY_TIMEOUT_MS },
          autoLoadEntities: true,
          retryAttempts: 1,
        }),
        TypeOrmModule.forFeature([ServiceState]),
      ],
      providers: [ServiceStateRepository, EncryptionKeyCheck],
    };
  }
}
