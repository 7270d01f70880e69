import { applyDecorators, createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { ApiExtension } from '@nestjs/swagger';
import type { Request } from 'express';
import { DomainError } from '../common/errors/domain-error.js';
import { OPEN_TO_EVERYONE } from '@slipway/api/openapi/api-route.js';
import { type Scope, scopesWithin } from '../common/scopes.js';
import type { KeyRepositories } from './key-repositories.js';

export interface AuthUser {
  id: string;
  email: string;
  /** Whether the user is an administrator, and the key has the scope for it, in all repositories. */
  isAdmin: boolean;
  /** The scopes of the key, or of the key that the session was exchanged for. */
  scopes: readonly Scope[];
  /** Those of the key, or of that one: what is about another repository, or none, is unknown to it. */
  repositories: KeyRepositories;
  /** The id of the key or session. */
  keyId: string;
}

/** Whether an administrator is one to a request that has the key. What is of all users is of no repository alone. */
export function administers({ scopes, repositories }: Pick<AuthUser, 'scopes' | 'repositories'>): boolean {
  return repositories === null && scopes.includes('admin');
}

/** Columns of a user, and of the key or session that speaks for the user. */
export interface StoredCaller {
  user_id: string;
  email: string;
  is_admin: boolean;
  reads_only: boolean;
  /** Null: all that the user may do. */
  scopes: Scope[] | null;
  /** Null: all that the user has. */
  repositories: string[] | null;
}

export function callerOf(stored: StoredCaller, keyId: string): AuthUser {
  const { user_id: id, email, repositories } = stored;
  const scopes = scopesWithin(stored.scopes, stored.reads_only);
  const isAdmin = stored.is_admin && administers({ scopes, repositories });
  return { id, email, isAdmin, scopes, repositories, keyId };
}

export interface AuthenticatedRequest extends Request {
  user?: AuthUser;
}

export const BESIDE_SANDBOX_KEY = 'slipway:beside-sandbox-key';

/** Marks routes where `X-Session-API-Key` may carry a sandbox's key beside the user's own in another header. */
export function BesideSandboxKey(): ReturnType<typeof SetMetadata> {
  return SetMetadata(BESIDE_SANDBOX_KEY, true);
}

export function authenticatedUser(context: ExecutionContext): AuthUser {
  const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!user) {
    throw new DomainError('unauthorized', 'Unauthorized');
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
