import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { isJsonObject, type JsonObject } from '@slipway/common/json-merge.js';
import {
  documentedField,
  type DescribeProblems,
  fieldRule,
  composeDecorators,
} from '../../common/validation/field.js';
import { jsonLengthProblems } from '../../common/validation/nested-fields.js';
import { mapSchema } from '../../common/validation/text-fields.js';
import type { ClearLlmProfile } from '../../settings/llm-profile.repository.js';
import {
  masked,
  type SettingsDetails,
  shownAgentSettings,
  shownConversationSettings,
} from '../../settings/nested-settings.js';
import { shownSettings, type SettingsRow } from '../../settings/settings-table.js';
import { SettingsDto } from '../../settings/settings.dto.js';
import { shownProfileConfig } from './profiles.dto.js';

const NO_OBJECT: DescribeProblems = () => [{ type: 'dict_type', msg: 'Expected an object.' }];

/** All settings together have a limit of their own; tool servers come with scripts and keys. */
const MAX_DIFF_LENGTH = 1_048_576;

/** A JSON object of any shape. */
function AnyObject(description: string, example: object): PropertyDecorator {
  return composeDecorators(
    documentedField({ description, example }, mapSchema({})),
    fieldRule('anyObject', {}, (value) =>
      isJsonObject(value) ? jsonLengthProblems(value, MAX_DIFF_LENGTH) : NO_OBJECT(value),
    ),
  );
}

/**
 * Body of `POST /api/v1/settings`: two diffs of the nested settings, and other members. Members of the flat settings are
 * accepted too; the rest are preferences of user interfaces, which are stored and shown.
 */
export class NestedSettingsDto extends SettingsDto {
  @AnyObject(
    'Merged into `agent_settings`: objects member by member, null returns a member to its default. null and the mask keep a key, blank text clears it. Servers in `mcp_config` are merged by name; within `mcpServers` they are the whole configuration.',
    { llm: { model: 'anthropic/claude-sonnet-4-5', api_key: 'llm-key-example' } },
  )
  agent_settings_diff?: JsonObject;

  @AnyObject('Merged into `conversation_settings` in the same way.', { max_iterations: 100 })
  conversation_settings_diff?: JsonObject;
}

/** Preferences that are always shown, with their values for a user who never set them. */
const APP_DEFAULTS = {
  user_version: null,
  disabled_skills: null,
  git_full_clone: false,
  v1_enabled: true,
  sandbox_grouping_strategy: 'NO_GROUPING',
  default_sandbox_spec_id: null,
  registered_marketplaces: [],
} as const;

/** Members of a response that are ignored in a request. */
const ECHOES: ReadonlySet<string> = new Set([
  'llm_profiles',
  'active_agent_profile_id',
  'active_agent_profile_revision',
  'inherited_marketplaces',
  'provider_tokens_set',
  'llm_api_key_set',
  'search_api_key_set',
  'sandbox_api_key_set',
]);

/** Legacy names of the diffs. They are refused: whole settings sent under them would replace what is stored. */
export const LEGACY_MEMBERS = ['agent_settings', 'conversation_settings'] as const;

/** The members of a body that are preferences: those that belong neither to the flat settings nor to a response. */
export function preferencesOf(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(
      ([name]) => !known.has(name) && !ECHOES.has(name) && !LEGACY_MEMBERS.some((legacy) => legacy === name),
    ),
  );
}

@ApiSchema({ name: 'LLMProfiles' })
export class ShownProfilesDto {
  @ApiProperty({
    type: 'object',
    additionalProperties: true,
    description: 'By name; keys are never shown.',
    example: {},
  })
  profiles: JsonObject;

  @ApiProperty({ type: String, nullable: true, example: null })
  active: string | null;
}

/** Response of `GET /api/v1/settings`: preferences beyond these members are shown as they were stored. */
@ApiSchema({ name: 'GETSettingsModel' })
export class ShownNestedSettingsDto {
  @ApiProperty({ type: 'object', additionalProperties: true, example: { agent: 'CodeActAgent' } })
  agent_settings: JsonObject;

  @ApiProperty({ type: 'object', additionalProperties: true, example: { max_iterations: 500 } })
  conversation_settings: JsonObject;

  @ApiProperty({ type: ShownProfilesDto })
  llm_profiles: ShownProfilesDto;

  @ApiProperty({ example: true })
  llm_api_key_set: boolean;

  @ApiProperty({ example: false })
  search_api_key_set: boolean;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string', nullable: true },
    example: { github: null },
  })
  provider_tokens_set: Record<string, string | null>;

  [preference: string]: unknown;
}

/** Members of the flat settings that are nested here. */
const NESTED: ReadonlySet<string> = new Set([
  'agent',
  'max_iterations',
  'security_analyzer',
  'confirmation_mode',
  'llm_model',
  'llm_api_key',
  'llm_base_url',
  'enable_default_condenser',
  'mcp_config',
]);

/** Everything that `GET /api/v1/settings` shows. */
export interface NestedSettings {
  row: SettingsRow;
  details: SettingsDetails;
  /** By name, masked. */
  mcpServers: JsonObject;
  /** For programs that may have the secrets themselves. */
  inClear: { llmKey: string | null; mcpServers: JsonObject };
  profiles: readonly ClearLlmProfile[];
  activeProfile: string | null;
}

export function toShownNestedSettingsDto(settings: NestedSettings): ShownNestedSettingsDto {
  const { row, details, mcpServers, profiles, activeProfile } = settings;
  const flat = shownSettings(row);
  return {
    ...APP_DEFAULTS,
    ...masked(details.app),
    ...Object.fromEntries(Object.entries(flat).filter(([name]) => !NESTED.has(name))),
    agent_settings: shownAgentSettings(row, details, mcpServers),
    conversation_settings: shownConversationSettings(row, details),
    llm_profiles: {
      profiles: Object.fromEntries(profiles.map(({ name, config }) => [name, shownProfileConfig(config)])),
      active: activeProfile,
    },
    active_agent_profile_id: null,
    active_agent_profile_revision: null,
    inherited_marketplaces: [],
    provider_tokens_set: flat.provider_tokens_set,
    llm_api_key_set: flat.llm_api_key_set,
    search_api_key_set: flat.search_api_key_set,
  };
}
