import { applyDecorators } from '@nestjs/common';
import {
  ApiBody,
  ApiCreatedResponse,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  getSchemaPath,
} from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import {
  ActivateProfileDto,
  ProfileDetailDto,
  ProfileListDto,
  ProfileMutationDto,
  ProfileSavedDto,
  SaveProfileDto,
} from './profiles.dto.js';

const UNKNOWN = { status: 404, detail: "Profile 'fast' not found", description: 'Unknown name' };
const BAD_NAME = invalidInput(
  ['path', 'name'],
  'value_error',
  'Expected a name of 1 to 64 letters, digits, dots, hyphens and underscores.',
);

/** Documents `GET /api/v1/settings/profiles`. */
export function ListProfilesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'list_profiles_api_v1_settings_profiles_get',
      summary: 'List stored models',
      description: 'Oldest first; keys are never shown.',
    }),
    ApiOkResponse({ type: ProfileListDto, description: 'The profiles' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/v1/settings/profiles/{name}`. */
export function GetProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_profile_api_v1_settings_profiles__name__get',
      summary: 'Show a stored model',
      description: 'All its parameters; keys are never shown.',
    }),
    ApiOkResponse({ type: ProfileDetailDto, description: 'The profile' }),
    ApiProblems(UNKNOWN, BAD_NAME),
  );
}

/** Documents `POST /api/v1/settings/profiles/{name}`. */
export function SaveProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'save_profile_api_v1_settings_profiles__name__post',
      summary: 'Store a model under a name',
      description:
        "Replaces a profile of that name. Without a body, the settings' model is stored. A model that its server does not accept, or that cannot be checked, is stored and named in `warnings`.",
    }),
    ApiExtraModels(SaveProfileDto),
    ApiBody({
      schema: { anyOf: [{ $ref: getSchemaPath(SaveProfileDto) }, { type: 'null' }] },
      required: false,
    }),
    ApiCreatedResponse({ type: ProfileSavedDto, description: 'Stored' }),
    ApiProblems(
      { status: 404, detail: 'Settings not found', description: 'Nothing is stored that could be saved' },
      {
        status: 409,
        code: 'conflict',
        detail: 'Profile limit reached (100). Delete a profile before saving a new one.',
        description: 'Too many profiles',
      },
      413,
      415,
      invalidInput(['body', 'llm', 'model'], 'missing', 'This member is required.'),
    ),
  );
}

/** Documents `DELETE /api/v1/settings/profiles/{name}`. */
export function DeleteProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_profile_api_v1_settings_profiles__name__delete',
      summary: 'Delete a stored model',
      description:
        'An unknown name is no error. When the settings follow the profile, they follow the oldest other one from then on.',
    }),
    ApiOkResponse({
      type: ProfileMutationDto,
      description: 'Deleted',
      example: { name: 'fast', message: "Profile 'fast' deleted" },
    }),
    ApiProblems(BAD_NAME),
  );
}

/** Documents `POST /api/v1/settings/profiles/{name}/activate`. */
export function ActivateProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'activate_profile_api_v1_settings_profiles__name__activate_post',
      summary: 'Set the settings to a stored model',
      description:
        "Model, address, key and parameters of the profile become the settings' own. A profile without a key keeps theirs, if it is for the same server.",
    }),
    ApiOkResponse({
      type: ActivateProfileDto,
      description: 'The settings follow the profile',
      example: { name: 'fast', message: "Switched to profile 'fast'", model: 'anthropic/claude-sonnet-4-5' },
    }),
    ApiProblems(UNKNOWN, BAD_NAME),
  );
}

/** Documents `POST /api/v1/settings/profiles/{name}/rename`. */
export function RenameProfileOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'rename_profile_api_v1_settings_profiles__name__rename_post',
      summary: 'Rename a stored model',
      description: 'Its configuration and key stay.',
    }),
    ApiOkResponse({
      type: ProfileMutationDto,
      description: 'Renamed',
      example: { name: 'quick', message: "Profile 'fast' renamed to 'quick'" },
    }),
    ApiProblems(
      UNKNOWN,
      {
        status: 409,
        code: 'conflict',
        detail: "Profile 'quick' already exists",
        description: 'The name is taken',
      },
      413,
      415,
      invalidInput(
        ['body', 'new_name'],
        'value_error',
        'Expected a name of 1 to 64 letters, digits, dots, hyphens and underscores.',
      ),
    ),
  );
}
