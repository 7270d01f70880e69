import { createParamDecorator } from '@nestjs/common';
import type { Request } from 'express';
import { Column } from 'typeorm';
import { authenticatedUser } from '../auth/auth.decorators.js';
import { OwnedThing } from '../auth/owned.repository.js';
import { unknownId } from '../common/errors/domain-error.js';
import { parseHexId } from '../common/identifiers.js';

/** Whose things a request is about. */
export interface Owner {
  userId: string;
  orgId: string;
}

export abstract class RowOfOwner extends OwnedThing {
  /** The user's personal organization, whose id is that of the user, until there are others. */
  @Column('uuid', { name: 'org_id' }) orgId: string;
}

/**
 * The user, in the organization of the header `X-Org-Id`, by default the personal one.
 * @throws DomainError not_found for an organization that is not the user's
 */
export const CurrentOwner = createParamDecorator((_data: unknown, context): Owner => {
  const { id } = authenticatedUser(context);
  const orgId = context.switchToHttp().getRequest<Request>().headers['x-org-id'];
  if (orgId !== undefined && parseHexId(String(orgId)) !== id) {
    throw unknownId('organization');
  }
  return { userId: id, orgId: id };
});
