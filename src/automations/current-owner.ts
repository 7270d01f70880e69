import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { AuthenticatedRequest } from '../auth/auth.decorators.js';
import { DomainError } from '../common/errors/domain-error.js';
import { parseHexId } from '../common/identifiers.js';
import { type DocumentedProblem, documented } from '../common/openapi/api-route.js';

/** Whose things a request is about. */
export interface Owner {
  userId: string;
  orgId: string;
}

/**
 * The user, in the organization of the header `X-Org-Id`, by default the personal one, whose id is that of the user.
 * @throws DomainError not_found for an organization that is not the user's
 */
export const CurrentOwner = createParamDecorator((_data: unknown, context: ExecutionContext): Owner => {
  const { user, headers } = context.switchToHttp().getRequest<AuthenticatedRequest>();
  if (!user) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  const given = headers['x-org-id'];
  if (given !== undefined && parseHexId(String(given)) !== user.id) {
    throw new DomainError('not_found', 'not_found', 'There is no organization with this id.');
  }
  return { userId: user.id, orgId: user.id };
});

/** @throws DomainError not_found for null */
export function found<T>(thing: T | null, noun: string): T {
  if (thing === null) {
    throw new DomainError('not_found', 'not_found', `There is no ${noun} with this id.`);
  }
  return thing;
}

/** How a route answers that calls {@link found}. */
export function unknown(noun: string): DocumentedProblem {
  return documented(404, `There is no ${noun} with this id.`, `Unknown ${noun}, or not yours`);
}
