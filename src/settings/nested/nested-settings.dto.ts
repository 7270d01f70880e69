import { ApiProperty, ApiSchema, OmitType } from '@nestjs/swagger';
import type { JsonObject } from '@slipway/common/json-access.js';
import { ANY_OBJECT, OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { FreeObject } from '@slipway/api/validation/field-decorators.js';
import { TellsOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { SettingsDto, StoredSettingsDto } from '../flat/settings.dto.js';
import type { ClearLlmProfile } from '../profiles/llm-profile.repository.js';
import { shownProfileConfig } from '../profiles/profiles.dto.js';
import {
  type SettingsKeys,
  type SettingsRow,
  type ShownSettings,
  shownSettings,
} from '@slipway/settings/settings-row.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';
import {
  masked,
  type SettingsDetails,
  shownAgentSettings,
  shownConversationSettings,
} from '@slipway/settings/nested-settings.js';

/** All settings together have a limit of their own; tool servers come with scripts and keys. */
const MAX_DIFF_LENGTH = 1_048_576;

/**
 * Body of `POST /api/v1/settings`: two diffs of the nested settings, and other members. Members of the flat settings are
 * accepted too; the rest are preferences of user interfaces, which are stored and shown.
 */
@TellsOtherMembers()
export class NestedSettingsDto extends SettingsDto {
  @FreeObject(
    'Merged into `agent_settings`: objects member by member, null returns a member to its default. null and the mask keep a key, blank text clears it. Servers in `mcp_config` are merged by name; within `mcpServers` they are the whole configuration.',
    {
      example: { llm: { model: 'anthropic/claude-sonnet-4-5', api_key: 'llm-key-example' } },
      maxLength: MAX_DIFF_LENGTH,
    },
  )
  agent_settings_diff?: JsonObject;

  @FreeObject('Merged into `conversation_settings` in the same way.', {
    example: { max_iterations: 100 },
    maxLength: MAX_DIFF_LENGTH,
  })
  conversation_settings_diff?: JsonObject;
}

/** Preferences that are always shown, with their values for a user who never set them. */
export const APP_DEFAULTS = {
  user_version: null,
  disabled_skills: null,
  git_full_clone: false,
  v1_enabled: true,
  sandbox_grouping_strategy: 'NO_GROUPING',
  default_sandbox_spec_id: null,
  registered_marketplaces: [],
} as const;

@ApiSchema({ name: 'LLMProfiles' })
export class ShownProfilesDto {
  @Shown('By name; keys are never shown.', {}, ANY_OBJECT) profiles: JsonObject;
  @OrNull(null) active: string | null;
}

const NESTED = [
  'agent',
  'max_iterations',
  'security_analyzer',
  'confirmation_mode',
  'llm_model',
  'llm_api_key',
  'llm_base_url',
  'enable_default_condenser',
  'mcp_config',
] as const;

/** Clients store what they like. */
export const ANY_VALUE = {
  anyOf: [
    { type: 'string' },
    { type: 'number' },
    { type: 'boolean' },
    { type: 'array', items: {} },
    { type: 'object', additionalProperties: true },
    { type: 'null' },
  ],
};

function Preference(name: keyof typeof APP_DEFAULTS): PropertyDecorator {
  const example = APP_DEFAULTS[name];
  return ApiProperty({ ...ANY_VALUE, description: 'As it was stored, or its default.', example });
}

/** Response of `GET /api/v1/settings`: preferences beyond these members are shown as they were stored. */
@ApiSchema({ name: 'GETSettingsModel' })
export class ShownNestedSettingsDto extends OmitType(StoredSettingsDto, NESTED) {
  @ApiProperty({ ...ANY_OBJECT, example: { agent: 'CodeActAgent' } }) agent_settings: JsonObject;
  @ApiProperty({ ...ANY_OBJECT, example: { max_iterations: 500 } }) conversation_settings: JsonObject;
  @ApiProperty({ type: ShownProfilesDto }) llm_profiles: ShownProfilesDto;
  @Preference('user_version') user_version: unknown;
  @Preference('disabled_skills') disabled_skills: unknown;
  @Preference('git_full_clone') git_full_clone: unknown;
  @Preference('v1_enabled') v1_enabled: unknown;
  @Preference('sandbox_grouping_strategy') sandbox_grouping_strategy: unknown;
  @Preference('default_sandbox_spec_id') default_sandbox_spec_id: unknown;
  @Preference('registered_marketplaces') registered_marketplaces: unknown;
  @OrNull(null, { description: 'Always null.' }) active_agent_profile_id: null;
  @OrNull(null, { description: 'Always null.' }) active_agent_profile_revision: null;
  @Shown('Always empty.', [], { type: 'array', items: {}, maxItems: 0 }) inherited_marketplaces: never[];

  [preference: string]: unknown;
}

export interface NestedSettings {
  row: SettingsRow;
  details: SettingsDetails;
  /** By name, masked. */
  mcpServers: JsonObject;
  /** For programs that may have the secrets themselves. */
  inClear: { keys: SettingsKeys; toolServers: readonly ToolServer[] | null };
  profiles: readonly ClearLlmProfile[];
  activeProfile: string | null;
}

export function toShownNestedSettingsDto(settings: NestedSettings): ShownNestedSettingsDto {
  const { row, details, mcpServers, profiles, activeProfile } = settings;
  return {
    ...APP_DEFAULTS,
    ...masked(details.app),
    ...withoutNested(shownSettings(row)),
    agent_settings: shownAgentSettings(row, details, mcpServers),
    conversation_settings: shownConversationSettings(row, details),
    llm_profiles: {
      profiles: Object.fromEntries(profiles.map(({ name, config }) => [name, shownProfileConfig(config)])),
      active: activeProfile,
    },
    active_agent_profile_id: null,
    active_agent_profile_revision: null,
    inherited_marketplaces: [],
  };
}

type NestedMember = (typeof NESTED)[number];

function withoutNested(flat: ShownSettings): Omit<ShownSettings, NestedMember> {
  const rest: Omit<ShownSettings, NestedMember> & Partial<ShownSettings> = { ...flat };
  for (const name of NESTED) {
    delete rest[name];
  }
  return rest;
}
