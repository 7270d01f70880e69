import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DatabaseNotificationsModule } from '../database/database-notifications.module.js';
import { AccessChanges, AccessChangesListener } from './access-changes.js';
import { AppConfig } from '../config/app-config.js';
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
import { OpenConnections } from './open-connections.js';
import { RequestAuthenticator } from './request-authenticator.js';
import { IssuerLogout, Session, SessionRepository } from './sessions/session.repository.js';
import { BearerTokenVerifier } from './oidc/bearer-token.verifier.js';
import { IdentitiesController } from './oidc/identities.controller.js';
import { Identity, IdentityRepository } from './oidc/identity.repository.js';
import { createOidcHttpClient, OidcHttpClient, OidcIssuer } from './oidc/oidc.issuer.js';
import { PersonsService } from './oidc/persons.service.js';
import { SignInController } from './oidc/sign-in.controller.js';
import { SignInService } from './oidc/sign-in.service.js';
import { BrowserSessions } from './sessions/browser-sessions.js';
import { SessionRenewal } from './sessions/session-renewal.js';
import { SessionsController } from './sessions/sessions.controller.js';
import { SessionsService } from './sessions/sessions.service.js';
import { User, UserRepository } from './user.repository.js';
import { RemovedUsersWorker } from './removed-users.worker.js';
import { UsersController } from './users.controller.js';
import { UsersService, UserWork } from './users.service.js';

@Module({
  imports: [
    DatabaseNotificationsModule,
    TypeOrmModule.forFeature([User, ApiKey, Session, IssuerLogout, DeviceLogin, Identity]),
  ],
  controllers: [
    ApiKeysController,
    DeviceLoginsController,
    OneTimeCodesController,
    IdentitiesController,
    SessionsController,
    SignInController,
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
    SessionRenewal,
    BearerTokenVerifier,
    IdentityRepository,
    { provide: OidcHttpClient, useFactory: createOidcHttpClient, inject: [AppConfig] },
    OidcIssuer,
    PersonsService,
    SignInService,
    AuthGuard,
    { provide: APP_GUARD, useExisting: AuthGuard },
  ],
  exports: [
    AccessChanges,
    ApiKeysService,
    ApiKeyVerifier,
    AuthGuard,
    IdentityRepository,
    OneTimeCodes,
    OpenConnections,
    RequestAuthenticator,
    UserRepository,
    UsersService,
    UserWork,
  ],
})
export class AuthModule {}
