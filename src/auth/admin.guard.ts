import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import type { AuthenticatedRequest } from './authenticated-request.js';

/** Lets administrators through. */
@Injectable()
export class AdminGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (user?.isAdmin !== true) {
      throw new DomainError('forbidden', 'forbidden', 'Only administrators may do this.');
    }
    return true;
  }
}
