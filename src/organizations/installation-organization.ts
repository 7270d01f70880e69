import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { authenticatedUser } from '../auth/auth.decorators.js';
import type { Owner } from '../auth/owned.repository.js';
import { unknownId } from '../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';

/**
 * Id of the organization that every user of an installation is a member of. It is the same in each installation: all
 * replicas know it without a query, and no row has to exist before the first request.
 */
export const INSTALLATION_ORGANIZATION_ID = '1f225cd6-f85e-43cc-9b44-96b41aadda1b';

/**
 * The organization that the header `X-Org-Id` picks: the installation's, which is the default, or the user's personal
 * one, whose id is that of the user.
 * @throws DomainError not_found for any other
 */
export const CurrentOrganization = createParamDecorator((_data: unknown, context): string =>
  pickedOrganization(context),
);

/**
 * The user, in the personal organization, where automations and their webhooks are in whichever organization the header
 * picks: an event of a shared one would start what its other members made.
 * @throws DomainError not_found for an organization that the user is no member of
 */
export const CurrentOwner = createParamDecorator((_data: unknown, context): Owner => {
  const { id } = authenticatedUser(context);
  pickedOrganization(context);
  return { userId: id, orgId: id };
});

function pickedOrganization(context: ExecutionContext): string {
  const { id } = authenticatedUser(context);
  const given = context.switchToHttp().getRequest<Request>().headers['x-org-id'];
  const picked = given === undefined ? INSTALLATION_ORGANIZATION_ID : parseHexId(String(given));
  if (picked !== INSTALLATION_ORGANIZATION_ID && picked !== id) {
    throw unknownId('organization');
  }
  return picked;
}
