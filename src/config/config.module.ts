import { Global, Module, type DynamicModule } from '@nestjs/common';
import { AppConfig } from './app-config.js';
import { CredentialsPlace } from './credentials-place.js';
import { ServiceAddress } from './service-address.js';

@Global()
@Module({})
export class ConfigModule {
  static register(config: AppConfig): DynamicModule {
    return {
      module: ConfigModule,
      providers: [{ provide: AppConfig, useValue: config }, ServiceAddress, CredentialsPlace],
      exports: [AppConfig, ServiceAddress, CredentialsPlace],
    };
  }
}
