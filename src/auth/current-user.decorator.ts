import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import type { AuthUser } from './auth-user.js';
import type { AuthenticatedRequest } from './authenticated-request.js';

/** The user whose key came with the request. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): AuthUser => {
  const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!user) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  return user;
});
