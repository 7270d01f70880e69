import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundAddresses } from '../common/http/host-allowlist.js';
import { AppConfig } from '../config/app-config.js';
import { McpConfig } from './mcp-config.entity.js';
import { McpConfigRepository } from './mcp-config.repository.js';

/** Tool-server configurations: rules, masks, storage. */
@Module({
  imports: [TypeOrmModule.forFeature([McpConfig])],
  providers: [
    McpConfigRepository,
    {
      provide: OutboundAddresses,
      useFactory: (config: AppConfig) => new OutboundAddresses(config.outbound.allowlist),
      inject: [AppConfig],
    },
  ],
  exports: [McpConfigRepository, OutboundAddresses],
})
export class McpConfigModule {}
