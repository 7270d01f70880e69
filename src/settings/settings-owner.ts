import {
  applyDecorators,
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiQuery } from '@nestjs/swagger';
import type { Request } from 'express';
import { type AuthUser, authenticatedUser } from '../auth/auth.decorators.js';
import { DomainError, unknownId } from '../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { requireScope } from '../common/scopes.js';
import { INSTALLATION_ORGANIZATION_ID } from '../organizations/installation-organization.js';

const SCOPES = ['user', 'organization'];
const READS: readonly string[] = ['GET', 'HEAD'];

/**
 * Whose settings a request is about: the user's, or with `?scope=organization` those of the installation's organization,
 * which all members read and administrators change. It documents the query. At the address of that organization, where
 * clients of the peer keep models, members have their own.
 * @throws DomainError forbidden, insufficient_scope; InvalidInputError for another scope
 */
export const SettingsOwner = createParamDecorator(
  (_data: unknown, context) => (isOfMember(context) ? authenticatedUser(context).id : ownerOf(context)),
  [
    (controller, method = '') => {
      ApiQuery({
        name: 'scope',
        required: false,
        schema: { type: 'string', enum: SCOPES, example: 'user' },
        description:
          '`organization`: what the organization has, for all its members. Administrators change it, with a key that has the scope `admin`, too.',
      })(controller, method, Object.getOwnPropertyDescriptor(controller, method) ?? {});
    },
  ],
);

/**
 * Whose settings a request is about by the organization in its path; the user's own are in the personal one.
 * @throws DomainError not_found for an organization of others, else as {@link SettingsOwner}
 */
export const OrganizationOwner = createParamDecorator((_data: unknown, context) => ownerOf(context));

function isOfMember(context: ExecutionContext): boolean {
  const { organization_id: id = '' } = context.switchToHttp().getRequest<Request>().params;
  return !authenticatedUser(context).isAdmin && parseHexId(String(id)) === INSTALLATION_ORGANIZATION_ID;
}

function ownerOf(context: ExecutionContext): string {
  const user = authenticatedUser(context);
  const { method, params, query } = context.switchToHttp().getRequest<Request>();
  const { organization_id: organizationId } = params;
  const ownerId =
    organizationId === undefined ? namedOwner(user, query['scope']) : parseHexId(String(organizationId));
  if (ownerId !== user.id && ownerId !== INSTALLATION_ORGANIZATION_ID) {
    throw unknownId('organization');
  }
  if (ownerId !== user.id && !READS.includes(method)) {
    requireAdministrator(user);
  }
  return ownerId;
}

function namedOwner({ id }: AuthUser, scope: unknown = 'user'): string {
  if (typeof scope !== 'string' || !SCOPES.includes(scope)) {
    const msg = `Expected one of: ${SCOPES.join(', ')}.`;
    throw new InvalidInputError({ loc: ['query', 'scope'], msg, type: 'enum' });
  }
  return scope === 'user' ? id : INSTALLATION_ORGANIZATION_ID;
}

const INSTEAD = 'slipway:instead-of-organization';

@Injectable()
class OfUsersGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const user = authenticatedUser(context);
    const { query } = context.switchToHttp().getRequest<Request>();
    if (namedOwner(user, query['scope']) !== user.id) {
      const instead = this.reflector.getAllAndOverride<string>(INSTEAD, [
        context.getHandler(),
        context.getClass(),
      ]);
      const msg = `Expected none with scope=organization: ${instead}`;
      throw new InvalidInputError({ loc: ['query', 'scope'], msg, type: 'value_error' });
    }
    return true;
  }
}

/**
 * Marks routes that are about what the user has, whatever the request says: one that is about the organization's would be
 * answered with the user's own, and change that.
 * @param instead what to ask for what the organization has
 */
export function OfUsers(instead: string): ClassDecorator & MethodDecorator {
  return applyDecorators(SetMetadata(INSTEAD, instead), UseGuards(OfUsersGuard));
}

export const OF_USERS = {
  secrets: 'secrets of the organization are at /api/organizations/{organization_id}/secrets.',
  gitTokens: 'git tokens are of users, and the organization has none.',
  modelChecks: 'it tests the model that you would call; name one of the organization by its profile.',
};

function requireAdministrator(user: AuthUser): void {
  requireScope(user, 'admin');
  if (!user.isAdmin) {
    throw onlyAdministratorsChange();
  }
}

function onlyAdministratorsChange(): DomainError {
  return new DomainError('forbidden', 'Only administrators change what the organization has.');
}

export const ADMINISTRATORS_CHANGE: DocumentedProblem = thrown(
  onlyAdministratorsChange(),
  'The key lacks a scope, or the user is no administrator and it is about the organization',
);
