import { createParamDecorator } from '@nestjs/common';
import type { Request } from 'express';
import { authenticatedUser } from '../auth/auth.decorators.js';
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
export const CurrentOwner = createParamDecorator((_data: unknown, context): Owner => {
  const { id } = authenticatedUser(context);
  const { headers } = context.switchToHttp().getRequest<Request>();
  const orgId = headers['x-org-id'];
  if (orgId !== undefined && parseHexId(String(orgId)) !== id) {
    throw new DomainError('not_found', 'not_found', 'There is no organization with this id.');
  }
  return { userId: id, orgId: id };
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
