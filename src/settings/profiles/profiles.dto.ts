import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { isObject } from 'class-validator';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { ANY_OBJECT, OrNull, Shown, ShownOrNull, WarningsOf } from '@slipway/api/openapi/responses.js';
import { field, must } from '@slipway/api/validation/field.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import type { ClearLlmProfile } from './llm-profile.repository.js';
import { MODEL_ADDRESS, ModelWarningDto } from '../flat/settings.dto.js';
import { fieldSchema, LLM_ECHOES, LLM_FIELDS, MAX_MODEL_TEXT } from '@slipway/settings/setting-fields.js';
import { masked, shownLlm } from '@slipway/settings/nested-settings.js';

/** Profile names are part of URLs. */
export const PROFILE_NAME = {
  regex: /^[A-Za-z0-9._-]{1,64}$/,
  expected: 'Expected a name of 1 to 64 letters, digits, dots, hyphens and underscores.',
};

function ProfileName(description: string): PropertyDecorator {
  return Text(description, { required: true, example: 'example', pattern: PROFILE_NAME });
}

export class ProfileNameDto {
  @ProfileName('Name of the profile.') name: string;
}

@ApiSchema({ name: 'RenameProfileRequest' })
export class RenameProfileDto {
  @ProfileName('The name from now on.') new_name: string;
}

/** Members of `llm`: those of the settings, and further members of a shown profile, which are accepted and ignored. */
const LLM_PROPERTIES = {
  ...Object.fromEntries(LLM_FIELDS.map((each) => [each.key.replace(/^llm\./, ''), fieldSchema(each)])),
  model: {
    type: 'string' as const,
    maxLength: MAX_MODEL_TEXT,
    pattern: String.raw`\S`,
    description: 'Model of new conversations.',
  },
  base_url: {
    type: 'string' as const,
    nullable: true,
    maxLength: MAX_MODEL_TEXT,
    pattern: `^(?:${MODEL_ADDRESS})?$`,
    description: "Address of the model's API; none: that of its provider.",
  },
  ...Object.fromEntries(LLM_ECHOES.map((name) => [name, {}])),
};

export function LlmConfig(description: string): PropertyDecorator {
  return field(
    description,
    { nullable: true, example: { model: 'anthropic/claude-sonnet-4-5', api_key: 'llm-key-example' } },
    {
      schema: {
        type: 'object',
        properties: LLM_PROPERTIES,
        required: ['model'],
        additionalProperties: false,
      },
      rules: { isObject: must(isObject, 'dict_type', 'Expected an object.') },
    },
  );
}

@ApiSchema({ name: 'SaveProfileRequest' })
export class SaveProfileDto {
  @Flag('Whether keys are saved too.', { default: true, example: true }) include_secrets?: boolean;

  @LlmConfig(
    "The model, its address, key and parameters: the members of `agent_settings.llm`, others are refused. Absent: the settings' own. Without a key the profile keeps its own.",
  )
  llm?: JsonObject | null;

  @Flag('Whether a profile of that name keeps its key, whatever else is saved.', {
    default: false,
    example: false,
  })
  preserve_existing_api_key?: boolean;
}

const SOURCES = ['user', 'organization'] as const;
const SOURCE =
  'Whose it is. One of the organization can be named in starts; administrators change it with `?scope=organization`.';

/** A profile, and whose it is. */
export type FoundProfile = ClearLlmProfile & { source: (typeof SOURCES)[number] };

class ProfileInfoDto {
  @ApiProperty({ example: 'fast' }) name: string;
  @OrNull('anthropic/claude-sonnet-4-5') model: string | null;
  @OrNull(null) base_url: string | null;
  @ApiProperty({ example: true }) api_key_set: boolean;
  @Shown(SOURCE, 'user', { enum: SOURCES }) source: (typeof SOURCES)[number];
}

@ApiSchema({ name: 'ProfileListResponse' })
export class ProfileListDto {
  @ApiProperty({ type: [ProfileInfoDto] }) profiles: ProfileInfoDto[];
  @ShownOrNull('The profile that the settings are the same as.', 'fast') active_profile: string | null;
}

@ApiSchema({ name: 'ProfileDetailResponse' })
export class ProfileDetailDto {
  @ApiProperty({ example: 'fast' }) name: string;

  @Shown(
    'Keys are never shown; the mask of another secret, sent back, keeps it.',
    { model: 'anthropic/claude-sonnet-4-5', api_key: null },
    ANY_OBJECT,
  )
  config: JsonObject;

  @ApiProperty({ example: true }) api_key_set: boolean;
  @Shown(SOURCE, 'user', { enum: SOURCES }) source: (typeof SOURCES)[number];
}

@ApiSchema({ name: 'ProfileMutationResponse' })
export class ProfileMutationDto {
  @ApiProperty({ example: 'fast' }) name: string;
  @ApiProperty({ example: "Profile 'fast' saved" }) message: string;
}

@ApiSchema({ name: 'ProfileSavedResponse' })
export class ProfileSavedDto extends ProfileMutationDto {
  @WarningsOf(ModelWarningDto, 'Says why the model was stored unverified; absent when it was not.')
  warnings?: ModelWarningDto[];
}

@ApiSchema({ name: 'ActivateProfileResponse' })
export class ActivateProfileDto extends ProfileMutationDto {
  @OrNull('anthropic/claude-sonnet-4-5') model: string | null;
}

export function shownProfileConfig(config: JsonObject): JsonObject {
  const { llm } = masked({ llm: config });
  return shownLlm(isJsonObject(llm) ? llm : {}, config['model'] ?? null, config['base_url'] ?? null);
}

export function toProfileInfoDto({ name, config, source }: FoundProfile): ProfileInfoDto {
  return {
    source,
    name,
    model: textOrNull(config['model']),
    base_url: textOrNull(config['base_url']),
    api_key_set: textOrNull(config['api_key']) !== null,
  };
}

export function toProfileDetailDto({ name, config, source }: FoundProfile): ProfileDetailDto {
  const isSet = textOrNull(config['api_key']) !== null;
  return { name, config: shownProfileConfig(config), api_key_set: isSet, source };
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
