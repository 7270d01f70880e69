import { applyDecorators, createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { ApiExtension } from '@nestjs/swagger';
import type { Request } from 'express';
import { DomainError } from '../common/errors/domain-error.js';
import { OPEN_TO_EVERYONE } from '../common/openapi/api-route.js';

export interface AuthUser {
  id: string;
  email: string;
  isAdmin: boolean;
  /** Of the key, or of the session. */
  keyId: string;
}

export interface AuthenticatedRequest extends Request {
  user?: AuthUser;
}

export const BESIDE_SANDBOX_KEY = 'slipway:beside-sandbox-key';

/** For routes where `X-Session-API-Key` may carry a sandbox's key beside the user's own in another header. */
export function BesideSandboxKey(): ReturnType<typeof SetMetadata> {
  return SetMetadata(BESIDE_SANDBOX_KEY, true);
}

export function authenticatedUser(context: ExecutionContext): AuthUser {
  const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!user) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  return user;
}

export const CurrentUser = createParamDecorator((_data: unknown, context) => authenticatedUser(context));
export const UserId = createParamDecorator((_data: unknown, context) => authenticatedUser(context).id);

export const PUBLIC_ROUTE = 'slipway:public';

/** Opens a route to requests without a key or a session; all others need one. */
export function Public(): ClassDecorator & MethodDecorator {
  return applyDecorators(SetMetadata(PUBLIC_ROUTE, true), ApiExtension(OPEN_TO_EVERYONE, true));
}
