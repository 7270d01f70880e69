import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../database/notifications/database-notifications.js';
import { AccessChanges, AccessChangesListener } from './access-changes.js';
import { ApiKey, ApiKeyRepository } from './api-key.repository.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { ApiKeysController } from './api-keys.controller.js';
import { ApiKeysService } from './api-keys.service.js';
import { AuthGuard } from './auth.guard.js';
import { BootstrapKeys } from './bootstrap-keys.js';
import { DeviceLogin, DeviceLoginRepository } from './device-login/device-login.repository.js';
import { DeviceLoginsController } from './device-login/device-logins.controller.js';
import { DeviceLoginsService } from './device-login/device-logins.service.js';
import { OneTimeCodes } from './one-time-codes.js';
import { OneTimeCodesController } from './one-time-codes.controller.js';
import { OrganizationsController } from './organizations.controller.js';
import { OpenConnections } from './open-connections.js';
import { RequestAuthenticator } from './request-authenticator.js';
import { Session, SessionRepository } from './sessions/session.repository.js';
import { BrowserSessions, SessionsController } from './sessions/sessions.controller.js';
import { SessionsService } from './sessions/sessions.service.js';
import { User, UserRepository } from './user.repository.js';
import { RemovedUsersWorker } from './removed-users.worker.js';
import { UsersController } from './users.controller.js';
import { UsersService, UserWork } from './users.service.js';

@Module({
  imports: [DatabaseNotificationsModule, TypeOrmModule.forFeature([User, ApiKey, Session, DeviceLogin])],
  controllers: [
    ApiKeysController,
    DeviceLoginsController,
    OneTimeCodesController,
    OrganizationsController,
    SessionsController,
    UsersController,
  ],
  providers: [
    AccessChanges,
    AccessChangesListener,
    ApiKeyRepository,
    UserRepository,
    ApiKeyVerifier,
    ApiKeysService,
    UsersService,
    UserWork,
    RemovedUsersWorker,
    BootstrapKeys,
    DeviceLoginRepository,
    DeviceLoginsService,
    OneTimeCodes,
    OpenConnections,
    RequestAuthenticator,
    SessionRepository,
    BrowserSessions,
    SessionsService,
    AuthGuard,
    { provide: APP_GUARD, useExisting: AuthGuard },
  ],
  exports: [
    AccessChanges,
    ApiKeysService,
    ApiKeyVerifier,
    AuthGuard,
    OneTimeCodes,
    OpenConnections,
    RequestAuthenticator,
    UsersService,
    UserWork,
  ],
})
export class AuthModule {}
