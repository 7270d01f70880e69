import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { MembersService } from './members.service.js';
import {
  OrganizationMembersController,
  OrganizationRefusalsController,
  OrganizationsController,
} from './organizations.controller.js';

@Module({
  imports: [AuthModule],
  // What is refused comes first: `members/count` would be a member.
  controllers: [OrganizationRefusalsController, OrganizationsController, OrganizationMembersController],
  providers: [MembersService],
})
export class OrganizationsModule {}
