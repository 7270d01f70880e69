import { Body, Controller, DefaultValuePipe, Delete, Get, Param, Post, UseGuards } from '@nestjs/common';
import { ApiExcludeController, type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import { UserId } from '../../auth/auth.decorators.js';
import { OrganizationGuard } from '../../organizations/organization.guard.js';
import { ApiRoute, badInput, thrown } from '../../common/openapi/api-route.js';
import { InputValidationPipe } from '../../common/validation/validation.pipe.js';
import { settingsNotFound } from '../flat/settings.service.js';
import {
  ActivateProfileDto,
  PROFILE_NAME,
  ProfileDetailDto,
  ProfileListDto,
  ProfileMutationDto,
  ProfileNameDto,
  ProfileSavedDto,
  RenameProfileDto,
  SaveProfileDto,
  textOrNull,
  toProfileDetailDto,
  toProfileInfoDto,
} from './profiles.dto.js';
import { ProfilesService, profileNameTaken, tooManyProfiles, unknownProfile } from './profiles.service.js';

const UNKNOWN = thrown(unknownProfile('fast'), 'Unknown name');
const NOTHING_TO_SAVE = thrown(settingsNotFound(), 'Nothing is stored that could be saved');
const TOO_MANY = thrown(tooManyProfiles(), 'Too many profiles');
const NAME_TAKEN = thrown(profileNameTaken('quick'), 'The name is taken');
const BAD_NAME = badInput('path.name', PROFILE_NAME.expected);

function changed(description: string, name: string, message: string): ApiResponseNoStatusOptions {
  return { type: ProfileMutationDto, description, example: { name, message } };
}

@ApiTags('Settings')
@Controller('api/v1/settings/profiles')
export class ProfilesController {
  constructor(private readonly profiles: ProfilesService) {}

  @Get()
  @ApiRoute('list_profiles_', 'List stored models', {
    description: 'Oldest first; keys are never shown.',
    answer: { type: ProfileListDto, description: 'The profiles' },
  })
  async list(@UserId() userId: string): Promise<ProfileListDto> {
    const { profiles, active } = await this.profiles.list(userId);
    return { profiles: profiles.map(toProfileInfoDto), active_profile: active };
  }

  @Get(':name')
  @ApiRoute('get_profile_', 'Show a stored model', {
    description: 'All its parameters; keys are never shown.',
    answer: { type: ProfileDetailDto, description: 'The profile' },
    problems: [UNKNOWN],
    invalid: BAD_NAME,
  })
  async find(@UserId() userId: string, @Param() { name }: ProfileNameDto): Promise<ProfileDetailDto> {
    return toProfileDetailDto(await this.profiles.find(userId, name));
  }

  @Post(':name')
  @ApiRoute('save_profile_', 'Store a model under a name', {
    description:
      "Replaces a profile of that name. Without a body, the settings' model is stored. A model that its server does not accept, or that cannot be checked, is stored and named in `warnings`.",
    status: 201,
    answer: { type: ProfileSavedDto, description: 'Stored' },
    optionalBody: SaveProfileDto,
    examples: {
      model: { summary: 'A model', value: { llm: { model: 'anthropic/claude-sonnet-4-5' } } },
      settings: { summary: "The settings' own, without its key", value: { include_secrets: false } },
    },
    problems: [NOTHING_TO_SAVE, TOO_MANY],
    invalid: badInput('body.llm.model', 'This member is required.', 'missing'),
  })
  async save(
    @UserId() userId: string,
    @Param() { name }: ProfileNameDto,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(SaveProfileDto)) body: Partial<SaveProfileDto>,
  ): Promise<ProfileSavedDto> {
    const warning = await this.profiles.save(userId, name, body);
    return { name, message: `Profile '${name}' saved`, ...(warning && { warnings: [warning] }) };
  }

  @Delete(':name')
  @ApiRoute('delete_profile_', 'Delete a stored model', {
    description:
      'An unknown name is no error. When the settings follow the profile, they follow the oldest other one from then on.',
    answer: changed('Deleted', 'fast', "Profile 'fast' deleted"),
    invalid: BAD_NAME,
  })
  async remove(@UserId() userId: string, @Param() { name }: ProfileNameDto): Promise<ProfileMutationDto> {
    await this.profiles.remove(userId, name);
    return { name, message: `Profile '${name}' deleted` };
  }

  @Post(':name/activate')
  @ApiRoute('activate_profile_', 'Set the settings to a stored model', {
    description:
      "Model, address, key and parameters of the profile become the settings' own. A profile without a key keeps theirs, if it is for the same server.",
    answer: {
      type: ActivateProfileDto,
      description: 'The settings follow the profile',
      example: {
        name: 'fast',
        message: "Switched to profile 'fast'",
        model: 'anthropic/claude-sonnet-4-5',
      },
    },
    problems: [UNKNOWN],
    invalid: BAD_NAME,
  })
  async activate(@UserId() userId: string, @Param() { name }: ProfileNameDto): Promise<ActivateProfileDto> {
    const { config } = await this.profiles.activate(userId, name);
    return { name, message: `Switched to profile '${name}'`, model: textOrNull(config['model']) };
  }

  @Post(':name/rename')
  @ApiRoute('rename_profile_', 'Rename a stored model', {
    description: 'Its configuration and key stay.',
    answer: changed('Renamed', 'quick', "Profile 'fast' renamed to 'quick'"),
    problems: [UNKNOWN, NAME_TAKEN],
    invalid: { ...BAD_NAME, loc: ['body', 'new_name'] },
  })
  async rename(
    @UserId() userId: string,
    @Param() { name }: ProfileNameDto,
    @Body() { new_name: newName }: RenameProfileDto,
  ): Promise<ProfileMutationDto> {
    await this.profiles.rename(userId, name, newName);
    return { name: newName, message: `Profile '${name}' renamed to '${newName}'` };
  }
}

/**
 * The same routes at the address where web applications for organizations look for them; documented only at the other
 * one.
 */
@ApiExcludeController()
@UseGuards(OrganizationGuard)
@Controller('api/organizations/:organization_id/profiles')
export class OrganizationProfilesController extends ProfilesController {}
