import { Body, Controller, Delete, Get, HttpCode, Param, Post, UseGuards } from '@nestjs/common';
import { ApiExcludeController, ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { OwnOrganizationGuard } from '../../auth/auth.guard.js';
import { OptionalBodyPipe } from '../../common/validation/validation.pipe.js';
import {
  type ActivateProfileDto,
  type ProfileDetailDto,
  type ProfileListDto,
  type ProfileMutationDto,
  ProfileNameDto,
  type ProfileSavedDto,
  RenameProfileDto,
  SaveProfileDto,
  textOrNull,
  toProfileDetailDto,
  toProfileListDto,
} from './profiles.dto.js';
import {
  ActivateProfileOperation,
  DeleteProfileOperation,
  GetProfileOperation,
  ListProfilesOperation,
  RenameProfileOperation,
  SaveProfileOperation,
} from './profiles.openapi.js';
import { ProfilesService } from './profiles.service.js';

@ApiTags('Settings')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/settings/profiles')
export class ProfilesController {
  constructor(private readonly profiles: ProfilesService) {}

  @Get()
  @ListProfilesOperation()
  async list(@CurrentUser() user: AuthUser): Promise<ProfileListDto> {
    const { profiles, active } = await this.profiles.list(user.id);
    return toProfileListDto(profiles, active);
  }

  @Get(':name')
  @GetProfileOperation()
  async find(@CurrentUser() user: AuthUser, @Param() { name }: ProfileNameDto): Promise<ProfileDetailDto> {
    return toProfileDetailDto(await this.profiles.find(user.id, name));
  }

  @Post(':name')
  @SaveProfileOperation()
  async save(
    @CurrentUser() user: AuthUser,
    @Param() { name }: ProfileNameDto,
    @Body(new OptionalBodyPipe(SaveProfileDto)) body: Partial<SaveProfileDto>,
  ): Promise<ProfileSavedDto> {
    const warning = await this.profiles.save(user.id, name, body);
    return { name, message: `Profile '${name}' saved`, ...(warning && { warnings: [warning] }) };
  }

  @Delete(':name')
  @DeleteProfileOperation()
  async remove(
    @CurrentUser() user: AuthUser,
    @Param() { name }: ProfileNameDto,
  ): Promise<ProfileMutationDto> {
    await this.profiles.remove(user.id, name);
    return { name, message: `Profile '${name}' deleted` };
  }

  @Post(':name/activate')
  @HttpCode(200)
  @ActivateProfileOperation()
  async activate(
    @CurrentUser() user: AuthUser,
    @Param() { name }: ProfileNameDto,
  ): Promise<ActivateProfileDto> {
    const { config } = await this.profiles.activate(user.id, name);
    return { name, message: `Switched to profile '${name}'`, model: textOrNull(config['model']) };
  }

  @Post(':name/rename')
  @HttpCode(200)
  @RenameProfileOperation()
  async rename(
    @CurrentUser() user: AuthUser,
    @Param() { name }: ProfileNameDto,
    @Body() { new_name: newName }: RenameProfileDto,
  ): Promise<ProfileMutationDto> {
    await this.profiles.rename(user.id, name, newName);
    return { name: newName, message: `Profile '${name}' renamed to '${newName}'` };
  }
}

/**
 * The same routes at the address where web applications for organizations look for them; documented only at the other
 * one.
 */
@ApiExcludeController()
@UseGuards(OwnOrganizationGuard)
@Controller('api/organizations/:organization_id/profiles')
export class OrganizationProfilesController extends ProfilesController {}
