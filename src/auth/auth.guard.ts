import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { DomainError } from '../common/errors/domain-error.js';
import { currentRequest } from '../common/requests/request-context.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { AuthenticatedRequest } from './authenticated-request.js';
import { BESIDE_SANDBOX_KEY } from './beside-sandbox-key.decorator.js';
import { presentedBesideSandboxKey, presentedKey } from './presented-key.js';
import { PUBLIC_ROUTE } from './public.decorator.js';

/** Closed by default: every route needs a key unless it says `@Public()`. */
@Injectable()
export class AuthGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly verifier: ApiKeyVerifier,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.says(PUBLIC_ROUTE, context)) {
      return true;
    }
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const key = this.says(BESIDE_SANDBOX_KEY, context)
      ? presentedBesideSandboxKey(request.headers)
      : presentedKey(request.headers);
    const user = key === null ? null : await this.verifier.verify(key);
    if (!user) {
      throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
    }
    request.user = user;
    const current = currentRequest();
    if (current) {
      current.userId = user.id;
    }
    return true;
  }

  private says(metadata: string, context: ExecutionContext): boolean {
    const places = [context.getHandler(), context.getClass()];
    return this.reflector.getAllAndOverride<boolean | undefined>(metadata, places) ?? false;
  }
}
