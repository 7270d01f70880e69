import { Body, Controller, DefaultValuePipe, Delete, Get, Param, Post } from '@nestjs/common';
import { ApiExcludeController, type ApiResponseNoStatusOptions, ApiTags } from '@nestjs/swagger';
import { ApiRoute, badInput, thrown } from '@slipway/api/openapi/api-route.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
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
import {
  profileNameTaken,
  profileOfOrganization,
  ProfilesService,
  tooManyProfiles,
  unknownProfile,
} from './profiles.service.js';
import { ADMINISTRATORS_CHANGE, SettingsOwner } from '../settings-owner.js';

const UNKNOWN = thrown(unknownProfile('fast'), 'Unknown name');
const NOTHING_TO_SAVE = thrown(settingsNotFound(), 'Nothing is stored that could be saved');
const TOO_MANY = thrown(tooManyProfiles(), 'Too many profiles');
const OF_ORGANIZATION = thrown(profileOfOrganization('fast'), 'It belongs to the organization');
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
    description:
      'Oldest first, and those of the organization whose names the user does not use; keys are never shown.',
    answer: { type: ProfileListDto, description: 'The profiles' },
  })
  async list(@SettingsOwner() ownerId: string): Promise<ProfileListDto> {
    const { profiles, active } = await this.profiles.list(ownerId);
    return { profiles: profiles.map(toProfileInfoDto), active_profile: active };
  }

  @Get(':name')
  @ApiRoute('get_profile_', 'Show a stored model', {
    description: 'All its parameters; keys are never shown.',
    answer: { type: ProfileDetailDto, description: 'The profile' },
    problems: [UNKNOWN],
    invalid: BAD_NAME,
  })
  async find(@SettingsOwner() ownerId: string, @Param() { name }: ProfileNameDto): Promise<ProfileDetailDto> {
    return toProfileDetailDto(await this.profiles.find(ownerId, name));
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
    problems: [NOTHING_TO_SAVE, TOO_MANY, ADMINISTRATORS_CHANGE],
    invalid: badInput('body.llm.model', 'This member is required.', 'missing'),
  })
  async save(
    @SettingsOwner() ownerId: string,
    @Param() { name }: ProfileNameDto,
    @Body(new DefaultValuePipe({}), new InputValidationPipe(SaveProfileDto)) body: Partial<SaveProfileDto>,
  ): Promise<ProfileSavedDto> {
    const warning = await this.profiles.save(ownerId, name, body);
    return { name, message: `Profile '${name}' saved`, ...(warning && { warnings: [warning] }) };
  }

  @Delete(':name')
  @ApiRoute('delete_profile_', 'Delete a stored model', {
    description:
      'An unknown name is no error. When the settings follow the profile, they follow the oldest other one from then on.',
    answer: changed('Deleted', 'fast', "Profile 'fast' deleted"),
    problems: [OF_ORGANIZATION, ADMINISTRATORS_CHANGE],
    invalid: BAD_NAME,
  })
  async remove(
    @SettingsOwner() ownerId: string,
    @Param() { name }: ProfileNameDto,
  ): Promise<ProfileMutationDto> {
    await this.profiles.remove(ownerId, name);
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
    problems: [UNKNOWN, OF_ORGANIZATION, ADMINISTRATORS_CHANGE],
    invalid: BAD_NAME,
  })
  async activate(
    @SettingsOwner() ownerId: string,
    @Param() { name }: ProfileNameDto,
  ): Promise<ActivateProfileDto> {
    const { config } = await this.profiles.activate(ownerId, name);
    return { name, message: `Switched to profile '${name}'`, model: textOrNull(config['model']) };
  }

  @Post(':name/rename')
  @ApiRoute('rename_profile_', 'Rename a stored model', {
    description: 'Its configuration and key stay.',
    answer: changed('Renamed', 'quick', "Profile 'fast' renamed to 'quick'"),
    problems: [UNKNOWN, NAME_TAKEN, ADMINISTRATORS_CHANGE],
    invalid: { ...BAD_NAME, loc: ['body', 'new_name'] },
  })
  async rename(
    @SettingsOwner() ownerId: string,
    @Param() { name }: ProfileNameDto,
    @Body() { new_name: newName }: RenameProfileDto,
  ): Promise<ProfileMutationDto> {
    await this.profiles.rename(ownerId, name, newName);
    return { name: newName, message: `Profile '${name}' renamed to '${newName}'` };
  }
}

/**
 * The same routes at the address where web applications for organizations look for them; documented only at the other
 * one.
 */
@ApiExcludeController()
@Controller('api/organizations/:organization_id/profiles')
export class OrganizationProfilesController extends ProfilesController {}
