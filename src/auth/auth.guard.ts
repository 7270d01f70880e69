import type { IncomingHttpHeaders } from 'node:http';
import {
  applyDecorators,
  type CanActivate,
  type ExecutionContext,
  Injectable,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiExtension } from '@nestjs/swagger';
import { DomainError } from '../common/errors/domain-error.js';
import { NO_KEY } from '../common/errors/problem.js';
import { ADMINISTRATORS_ONLY } from '../common/openapi/api-route.js';
import { noteCaller } from '../common/requests/request-context.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { type AuthenticatedRequest, BESIDE_SANDBOX_KEY, PUBLIC_ROUTE } from './auth.decorators.js';

/** Checks the API key of a request. Every route needs one unless it is `@Public()`. */
@Injectable()
export class AuthGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly verifier: ApiKeyVerifier,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.isMarked(PUBLIC_ROUTE, context)) {
      return true;
    }
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const key = this.isMarked(BESIDE_SANDBOX_KEY, context)
      ? presentedBesideSandboxKey(request.headers)
      : presentedKey(request.headers);
    const user = key === null ? null : await this.verifier.verify(key);
    if (!user) {
      throw new DomainError('unauthorized', 'unauthorized', NO_KEY);
    }
    request.user = user;
    noteCaller(user.id, user.id, user.keyId);
    return true;
  }

  private isMarked(metadata: string, context: ExecutionContext): boolean {
    const targets = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride<boolean | undefined>(metadata, targets) ?? false;
  }
}

@Injectable()
class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (user?.isAdmin !== true) {
      throw new DomainError('forbidden', 'forbidden', 'Only administrators may do this.');
    }
    return true;
  }
}

/** Refuses users who are not administrators. */
export function AdministratorsOnly(): ClassDecorator & MethodDecorator {
  return applyDecorators(UseGuards(AdminGuard), ApiExtension(ADMINISTRATORS_ONLY, true));
}

/** Lets users into the one organization that they have: their own space, named by their id in the path. */
@Injectable()
export class OwnOrganizationGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { params, user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (user === undefined || params['organization_id'] !== user.id) {
      throw new DomainError('not_found', 'not_found', 'There is no organization with this id.');
    }
    return true;
  }
}

/** The first of X-Session-API-Key, X-Access-Token and Authorization (Bearer) that is there decides alone. */
export function presentedKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-session-api-key'] ?? headers['x-access-token'];
  return direct === undefined ? bearerToken(headers) : single(direct);
}

/** For routes where `X-Session-API-Key` may carry a sandbox's key: the other two headers win. */
export function presentedBesideSandboxKey(headers: IncomingHttpHeaders): string | null {
  const direct = headers['x-access-token'];
  if (direct !== undefined) {
    return single(direct);
  }
  return headers.authorization === undefined ? presentedKey(headers) : bearerToken(headers);
}

/** The bearer token (RFC 6750), or null. */
export function bearerToken(headers: IncomingHttpHeaders): string | null {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}

function single(value: string | string[]): string | null {
  return typeof value === 'string' ? value : null;
}
