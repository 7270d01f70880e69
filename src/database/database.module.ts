import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { dataSourceOptions } from './open-database.js';
import { EncryptionKeyCheck } from './encryption-key-check.js';
import { ServiceState } from './service-state.entity.js';

/** Longer than the server's own limit for a statement: only a server that hangs lets it pass. */
const ANSWER_TIMEOUT_MS = 20_000;

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
          extra: { ...options.extra, query_timeout: ANSWER_TIMEOUT_MS },
          autoLoadEntities: true,
          retryAttempts: 1,
        }),
        TypeOrmModule.forFeature([ServiceState]),
      ],
      providers: [EncryptionKeyCheck],
    };
  }
}
