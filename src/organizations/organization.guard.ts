import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { AuthenticatedRequest } from '../auth/auth.decorators.js';
import { unknownId } from '../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { INSTALLATION_ORGANIZATION_ID } from './installation-organization.js';

/** Lets users into their organizations, named in the path: that of the installation, and their own space. */
@Injectable()
export class OrganizationGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { params, user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const id = parseHexId(String(params['organization_id']));
    if (user === undefined || (id !== INSTALLATION_ORGANIZATION_ID && id !== user.id)) {
      throw unknownId('organization');
    }
    return true;
  }
}

/** Lets users into the organization of the installation alone. */
@Injectable()
export class InstallationOrganizationGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { params } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (parseHexId(String(params['organization_id'])) !== INSTALLATION_ORGANIZATION_ID) {
      throw unknownId('organization');
    }
    return true;
  }
}
