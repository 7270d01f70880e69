import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AppConfig } from '../config/app-config.js';
import { ApiKey } from './api-key.entity.js';
import { ApiKeyVerifier, LiveKeys } from './api-key.verifier.js';
import { ApiKeysController } from './api-keys.controller.js';
import { ApiKeysService } from './api-keys.service.js';
import { AuthGuard, KeyRateLimitGuard } from './auth.guard.js';
import { BootstrapKeys } from './bootstrap-keys.js';
import { User } from './user.entity.js';
import { UsersController } from './users.controller.js';
import { UsersService } from './users.service.js';

const MINUTE_MS = 60_000;

@Module({
  imports: [
    TypeOrmModule.forFeature([User, ApiKey]),
    ThrottlerModule.forRootAsync({
      inject: [AppConfig],
      useFactory: ({ http: { rateLimitPerMinute } }: AppConfig) => ({
        throttlers: [{ ttl: MINUTE_MS, limit: Math.max(1, rateLimitPerMinute) }],
        skipIf: () => rateLimitPerMinute === 0,
      }),
    }),
  ],
  controllers: [ApiKeysController, UsersController],
  providers: [
    ApiKeyVerifier,
    ApiKeysService,
    UsersService,
    BootstrapKeys,
    LiveKeys,
    // In this order: who it is, then how often.
    { provide: APP_GUARD, useClass: AuthGuard },
    { provide: APP_GUARD, useClass: KeyRateLimitGuard },
  ],
  exports: [ApiKeysService, LiveKeys, UsersService],
})
export class AuthModule {}
