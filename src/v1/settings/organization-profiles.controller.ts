import { type CanActivate, Controller, type ExecutionContext, Injectable, UseGuards } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { AuthenticatedRequest } from '../../auth/auth.decorators.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { ProfilesController } from './profiles.controller.js';

/** Users have one organization: their own. */
@Injectable()
class OwnOrganizationGuard implements CanActivate {
  /** @throws DomainError not_found for the organization of anybody else */
  canActivate(context: ExecutionContext): boolean {
    const { params, user } = context.switchToHttp().getRequest<AuthenticatedRequest>();
    if (params['organization'] !== user?.id) {
      throw new DomainError('not_found', 'not_found', 'There is no organization with this id.');
    }
    return true;
  }
}

/** The stored models once more, where web applications for organizations look for them; documented at their own address. */
@ApiExcludeController()
@UseGuards(OwnOrganizationGuard)
@Controller('api/organizations/:organization/profiles')
import { Controller, UseGuards } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { OwnOrganizationGuard } from '../../auth/auth.guard.js';
import { ProfilesController } from './profiles.controller.js';

/**
 * The profiles of `/api/v1/settings/profiles` again, where the web application looks for them once it knows the user's
 * organization: the routes are inherited, and described there.
 */
@ApiExcludeController()
@UseGuards(OwnOrganizationGuard)
@Controller('api/organizations/:organization_id/profiles')
export class OrganizationProfilesController extends ProfilesController {}
