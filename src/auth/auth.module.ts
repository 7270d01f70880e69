import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ThrottlerModule } from '@nestjs/throttler';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AppConfig } from '../config/app-config.js';
import { ApiKey, ApiKeyRepository } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { ApiKeysController } from './api-keys.controller.js';
import { ApiKeysService } from './api-keys.service.js';
import { AuthGuard, KeyRateLimitGuard } from './auth.guard.js';
import { BootstrapKeys } from './bootstrap-keys.js';
import { OrganizationsController } from './organizations.controller.js';
import { RateLimitStorage } from './rate-limit.storage.js';
import { User, UserRepository } from './user.repository.js';
import { UsersController } from './users.controller.js';
import { UsersService } from './users.service.js';

const MINUTE_MS = 60_000;

/** API keys, users, and the guards of every route. */
@Module({
  imports: [
    TypeOrmModule.forFeature([User, ApiKey]),
    ThrottlerModule.forRootAsync({
      inject: [AppConfig],
      useFactory: ({ http: { rateLimitPerMinute } }: AppConfig) => ({
        throttlers: [{ ttl: MINUTE_MS, limit: Math.max(1, rateLimitPerMinute) }],
        skipIf: () => rateLimitPerMinute === 0,
        storage: new RateLimitStorage(),
      }),
    }),
  ],
  controllers: [ApiKeysController, OrganizationsController, UsersController],
  providers: [
    ApiKeyRepository,
    UserRepository,
    ApiKeyVerifier,
    ApiKeysService,
    UsersService,
    BootstrapKeys,
    // In this order: first who asks, then how often.
    { provide: APP_GUARD, useClass: AuthGuard },
    { provide: APP_GUARD, useClass: KeyRateLimitGuard },
  ],
  exports: [ApiKeysService, ApiKeyVerifier, UsersService],
})
export class AuthModule {}
