import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { dataSourceOptions } from './data-source-options.js';
import { EncryptionKeyCheck } from './encryption-key-check.js';
import { ServiceState } from './service-state.entity.js';

/** The data source; features add their entities with `TypeOrmModule.forFeature`. */
@Module({})
export class DatabaseModule {
  static register(url: string, poolSize: number): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...dataSourceOptions(url, poolSize),
          autoLoadEntities: true,
          retryAttempts: 1,
        }),
        TypeOrmModule.forFeature([ServiceState]),
      ],
      providers: [EncryptionKeyCheck],
    };
  }
}
