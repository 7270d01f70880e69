import {
  applyDecorators,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Response } from 'express';
import { ApiExtension } from '@nestjs/swagger';
import { DomainError, NO_KEY } from '../common/errors/domain-error.js';
import { ADMINISTRATORS_ONLY } from '@slipway/api/openapi/api-route.js';
import { noteCaller } from '@slipway/api/requests/request-context.js';
import { isForSomeRepositories, OPENS_SANDBOXES, requireScope, scopeOf } from '../common/scopes.js';
import { type AuthenticatedRequest, BESIDE_SANDBOX_KEY, PUBLIC_ROUTE } from './auth.decorators.js';
import { notForSomeRepositories } from './key-repositories.js';
import { OpenConnections } from './open-connections.js';
import { RequestAuthenticator } from './request-authenticator.js';
import { hasSessionCookie } from './sessions/session-cookie.js';
import { administratorsOnly } from './user.repository.js';

const SESSION_ENDED =
  'Unauthorized: you are signed out, or the session has ended. Sign in again, or send an API key in the header X-Session-API-Key.';

/** Checks the API key or the session of a request, and its scope. Every route needs one unless it is `@Public()`. */
@Injectable()
export class AuthGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly authenticator: RequestAuthenticator,
    private readonly connections: OpenConnections,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    return this.isMarked(PUBLIC_ROUTE, context) || (await this.requireUser(context));
  }

  /** Public routes that accept other keys too call this. @throws DomainError unauthorized, forbidden, insufficient_scope, outside_repositories */
  async requireUser(context: ExecutionContext): Promise<true> {
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const key = this.authenticator.presentedKey(request.headers, this.isMarked(BESIDE_SANDBOX_KEY, context));
    const user = await this.authenticator.authenticate(request, key);
    if (!user) {
      const isSession = key === null && hasSessionCookie(request.headers);
      throw new DomainError('unauthorized', isSession ? SESSION_ENDED : NO_KEY);
    }
    request.user = user;
    const client = context.switchToHttp().getResponse<Response>();
    this.connections.add(client, { userId: user.id, keyId: user.keyId });
    const { repositories, scopes } = user;
    const opensSandboxes = scopes.includes('run') && repositories === null;
    noteCaller(user.id, user.id, user.keyId, opensSandboxes ? [OPENS_SANDBOXES] : []);
    requireScope(user, scopeOf(request.method, routeOf(request)));
    if (repositories !== null && !isForSomeRepositories(request.method, routeOf(request))) {
      throw notForSomeRepositories(repositories);
    }
    return true;
  }

  private isMarked(metadata: string, context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride<boolean | undefined>(metadata, targets) ?? false;
  }
}

/** The path of the matched route, which does not vary with capitals or a trailing slash in the address. */
function routeOf({ route }: AuthenticatedRequest): string {
  return String(Object(route).path);
}

@Injectable()
class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (user?.isAdmin !== true) {
      throw administratorsOnly();
    }
    return true;
  }
}

/** Refuses users who are not administrators. */
export function AdministratorsOnly(): ClassDecorator & MethodDecorator {
  return applyDecorators(UseGuards(AdminGuard), ApiExtension(ADMINISTRATORS_ONLY, true));
}
