import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from '../config/app-config.js';
import { McpConfig, McpConfigRepository } from './mcp-config.repository.js';
import { McpConfigService } from './mcp-config.service.js';

/** Tool-server configurations: rules, masks, storage. */
@Module({
  imports: [TypeOrmModule.forFeature([McpConfig])],
  providers: [
    McpConfigRepository,
    McpConfigService,
    {
      provide: OutboundAddresses,
      useFactory: (config: AppConfig) => new OutboundAddresses(config.outbound.allowlist),
      inject: [AppConfig],
    },
  ],
  exports: [McpConfigRepository, McpConfigService, OutboundAddresses],
})
export class McpConfigModule {}
