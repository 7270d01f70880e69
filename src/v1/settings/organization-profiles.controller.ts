import { Controller, UseGuards } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { OwnOrganizationGuard } from '../../auth/auth.guard.js';
import { ProfilesController } from './profiles.controller.js';

/** The stored models once more, where web applications for organizations look for them; documented at their own address. */
@ApiExcludeController()
@UseGuards(OwnOrganizationGuard)
@Controller('api/organizations/:organization_id/profiles')
export class OrganizationProfilesController extends ProfilesController {}
