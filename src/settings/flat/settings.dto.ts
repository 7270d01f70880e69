import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { isObject } from 'class-validator';
import type { CloneFilter } from '@slipway/common/clone-part.js';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { unmaskableWarning } from '@slipway/common/secret-mask.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { OrNull, Shown, WarningsOf } from '../../common/openapi/responses.js';
import { customRule, field, MAX_ELEMENTS, maxItems, must } from '../../common/validation/field.js';
import { TellsOtherMembers } from '../../common/validation/unknown-members.js';
import {
  Choice,
  Decimal,
  Flag,
  Integer,
  MAX_EMAIL,
  MAX_SECRET,
  MAX_URL,
  Nested,
  NestedMap,
  Secret,
  sentenceRule,
  Text,
} from '../../common/validation/field-decorators.js';
import { PROVIDER_ERROR_CODES, PROVIDER_TYPES, type ProviderType } from '../../git-providers/git-provider.js';
import type { ProviderTokenInputs } from '../../git-providers/tokens/plan-token-changes.js';
import { CloneDepthField, CloneFilterField } from '../clone-fields.js';
import { ProviderTokenMap } from '../secrets/git-tokens.dto.js';
import { type McpConfigDto, McpConfigField, StoredMcpConfigDto } from '../mcp/mcp-config.dto.js';
import { MODEL_WARNING_CODES, type ModelWarning } from '../model-check.js';
import { MODEL_USE_CODES } from '../model-use.js';
import {
  CUSTOM_SECRET_FORM,
  customSecretNameProblem,
  CustomSecretValueDto,
  secretWarning,
} from '../secrets/secrets.dto.js';
import {
  LLM_SOURCES,
  type LlmSource,
  type Setting,
  SETTINGS,
  type SettingsColumn,
  type SettingsRow,
  type ShownSettings,
  shownSettings,
} from '../settings-table.js';

const WARNING_CODES = [
  ...PROVIDER_ERROR_CODES,
  ...MODEL_WARNING_CODES,
  ...MODEL_USE_CODES,
  'unknown_member',
  'null_keeps',
] as const;

/** One type for all: generators of clients fail at unions of objects. */
@ApiSchema({ name: 'SettingsWarning' })
export class SettingsWarningDto {
  @ApiProperty({ enum: [...new Set(WARNING_CODES)], example: 'unknown_member' })
  code: (typeof WARNING_CODES)[number];

  @ApiProperty({ example: 'This member is not known here.' }) detail: string;

  @ApiProperty({
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    required: false,
    description: 'Whose token was stored unverified.',
  })
  provider?: ProviderType;

  @Shown('What did not change as its sender may think.', 'lanugage', { required: false }) member?: string;
}

const MAX_NAMED = 20;
const MAX_NAME = 100;

/** Members of responses, which forms send back with the rest. */
export const SHOWN_ONLY: ReadonlySet<string> = new Set([
  'provider_tokens_set',
  'llm_source',
  ...Object.entries(SETTINGS).flatMap(([name, { kind }]) => (kind === 'key' ? [`${name}_set`] : [])),
]);

export function unknownMembers(
  body: JsonObject,
  detail: string,
  isKnown: (name: string) => boolean,
): SettingsWarningDto[] {
  return Object.keys(body)
    .filter((name) => !isKnown(name))
    .slice(0, MAX_NAMED)
    .map((name) => ({ code: 'unknown_member', member: name.slice(0, MAX_NAME), detail }));
}

/** Of members that null does not clear, those with a stored value that null has kept. */
export function keptByNull(
  given: Partial<Record<SettingsColumn, unknown>>,
  stored: Partial<Record<SettingsColumn, unknown>>,
): SettingsWarningDto[] {
  return Object.entries(SETTINGS).flatMap(([name, setting]) => {
    const column = name as SettingsColumn;
    const isKept = 'nullKeeps' in setting && given[column] === null && (stored[column] ?? null) !== null;
    const hint = 'blankClears' in setting ? '; blank text clears it' : '';
    return isKept
      ? [{ code: 'null_keeps' as const, member: name, detail: `null keeps the stored value${hint}.` }]
      : [];
  });
}

export const MODEL_ADDRESS = String.raw`[Hh][Tt][Tt][Pp][Ss]?://[^\s\\/?#\x00-\x1f\x7f-\x9f][^\s\\\x00-\x1f\x7f-\x9f]*`;

/** Tokens and secrets that come along with settings. Both maps are merged into what is stored. */
@ApiSchema({ name: 'UserSecrets' })
class SecretsStoreDto {
  @ProviderTokenMap() provider_tokens?: ProviderTokenInputs;

  @NestedMap('Secrets by name; a bare string is the value. Secrets left out are kept.', {
    type: CustomSecretValueDto,
    nullIsAbsent: true,
    keyRule: sentenceRule(customSecretNameProblem),
    keySchema: CUSTOM_SECRET_FORM,
    orText: { form: { format: 'password', maxLength: MAX_SECRET }, read: (secret) => ({ secret }) },
    example: { DEPLOY_TOKEN: { secret: 'secret-example', description: 'Token of the deployment service' } },
  })
  custom_secrets?: Map<string, CustomSecretValueDto>;
}

/** A model that was stored although its server did not accept it, or could not be asked. */
export class ModelWarningDto implements ModelWarning {
  @ApiProperty({ enum: MODEL_WARNING_CODES, example: 'unauthorized' }) code: ModelWarning['code'];

  @ApiProperty({ example: 'The model was stored but not verified: 401 Incorrect API key provided.' })
  detail: string;
}

export class SettingsStoredDto {
  @ApiProperty({ example: 'Settings stored' }) message: string;

  @WarningsOf(
    SettingsWarningDto,
    'Tokens and a model that were stored unverified, members that are not known, and those whose null kept a stored value; absent when there are none.',
  )
  warnings?: SettingsWarningDto[];

  @Shown(
    'Custom secrets whose values will not be hidden in events and outputs, and why; absent when there are none.',
    [unmaskableWarning('DEPLOY_TOKEN', 'word')],
    { type: [String], required: false },
  )
  secret_warnings?: string[];
}

export function toSettingsStoredDto(
  warnings: readonly SettingsWarningDto[],
  secrets: ReadonlyMap<string, CustomSecretValueDto> = new Map(),
): SettingsStoredDto {
  const secretWarnings = [...secrets].flatMap(([name, { secret }]) => {
    const { warning } = secretWarning(name, secret);
    return warning === undefined ? [] : [warning];
  });
  return {
    message: 'Settings stored',
    ...(warnings.length > 0 && { warnings: [...warnings] }),
    ...(secretWarnings.length > 0 && { secret_warnings: secretWarnings }),
  };
}

const SIZES = { minimum: 1, maximum: 8 };
const KEPT = 'null keeps the stored value, blank text clears it.';
const KEY_KEPT = 'null and the mask `**********` keep the stored key, blank text clears it.';

function Switch(description: string): PropertyDecorator {
  return (target, property) => {
    const { default: preset } = SETTINGS[property as keyof typeof SETTINGS] as Setting;
    Flag(description, { default: preset, example: preset })(target, property);
  };
}

function TextOrNull(description: string, example: string, maxLength?: number): PropertyDecorator {
  return Text(description, { nullable: true, example, ...(maxLength && { maxLength }) });
}

/** Copied keys bring a line break along, which no header can hold. */
function KeyOrNull(description: string, example: string): PropertyDecorator {
  return Secret(description, example, { nullable: true, trim: true });
}

/** Body of `POST /api/settings`. Members left out keep their values; members it does not list are ignored, and named in `warnings`. */
@TellsOtherMembers()
export class SettingsDto {
  @TextOrNull('Language of the user interface.', 'en') language?: string | null;

  @TextOrNull('Agent that works in new conversations.', 'CodeActAgent')
  agent?: string | null;

  @Integer('Most steps of one run of the agent.', { nullable: true, minimum: 1, example: 100 })
  max_iterations?: number | null;

  @TextOrNull('Judge of the risk of actions.', 'llm')
  security_analyzer?: string | null;

  @Flag('Whether risky actions wait for the user.', { nullable: true, example: false })
  confirmation_mode?: boolean | null;

  @TextOrNull(`Model of new conversations. ${KEPT}`, 'provider/model-1')
  llm_model?: string | null;

  @KeyOrNull(`Key for the model. ${KEY_KEPT}`, 'llm-key-example') llm_api_key?: string | null;

  @Text(`Absolute http or https address of the model's API, without credentials in it. ${KEPT}`, {
    nullable: true,
    trim: true,
    example: 'https://llm.example.com/v1',
    maxLength: MAX_URL,
    form: { pattern: String.raw`^\s*(?:${MODEL_ADDRESS}\s*)?$` },
    rule: (address) => (address === '' ? null : addressProblem(address, ['http', 'https'])),
  })
  llm_base_url?: string | null;

  @Integer('Size of sandboxes, as a multiple of the smallest.', { ...SIZES, nullable: true, example: 1 })
  remote_runtime_resource_factor?: number | null;

  @Nested('Tokens and secrets to merge into the stored ones; stored elsewhere and never shown.', {
    type: SecretsStoreDto,
    nullIsAbsent: true,
  })
  @customRule('isObject', must(isObject, 'value_error', 'Expected an object.'))
  secrets_store?: SecretsStoreDto;

  @Switch('Whether long histories are condensed.') enable_default_condenser?: boolean;
  @Switch('Whether the user interface plays sounds.') enable_sound_notifications?: boolean;
  @Switch('Whether conversations are offered unasked.') enable_proactive_conversation_starters?: boolean;
  @Switch('Whether issues are judged for how solvable they are.') enable_solvability_analysis?: boolean;

  @Flag('Whether the user agreed to analytics. null keeps the stored value.', {
    nullable: true,
    example: false,
  })
  user_consents_to_analytics?: boolean | null;

  @TextOrNull(
    'Image that sandboxes run where `sandbox_runtime_container_image` names none.',
    'docker.io/library/debian:13',
  )
  sandbox_base_container_image?: string | null;

  @TextOrNull(
    'Image that sandboxes run. One without an agent server gets that of the service.',
    'registry.example.com/sandbox:1',
  )
  sandbox_runtime_container_image?: string | null;

  @McpConfigField() mcp_config?: McpConfigDto | null;

  @KeyOrNull(
    `Key for web search. ${KEY_KEPT} Beside provider_tokens_set, blank text keeps it too.`,
    'search-key-example',
  )
  search_api_key?: string | null;

  @KeyOrNull(
    `Key for a remote sandbox service; stored, but no sandbox of this service needs it. ${KEY_KEPT}`,
    'sandbox-key-example',
  )
  sandbox_api_key?: string | null;

  @Decimal('Most that one task may cost, in US dollars.', { nullable: true, minimum: 0, example: 2.5 })
  max_budget_per_task?: number | null;

  @TextOrNull('Email address of the user.', 'ada@example.com', MAX_EMAIL)
  email?: string | null;

  @Flag('Whether the address is confirmed.', { nullable: true, example: true })
  email_verified?: boolean | null;

  @TextOrNull('Author name of commits.', 'Ada Lovelace', 255)
  git_user_name?: string | null;

  @TextOrNull('Author address of commits.', 'ada@example.com', MAX_EMAIL)
  git_user_email?: string | null;

  @Choice('Whether a fork of yours is made and pushed to where you may not push; null: `auto`.', {
    values: ['auto', 'never'],
    nullable: true,
    example: 'auto',
  })
  fork?: string | null;

  @CloneDepthField() clone_depth?: number | null;
  @CloneFilterField() clone_filter?: CloneFilter | null;

  // Nothing of it is kept, so all that matters is how much of it there is.
  @field(
    'As the response has it, whatever it says: a form that sends it sends back what it was shown, keys that it was not shown among it.',
    { example: { github: null } },
    {
      schema: { type: 'object', additionalProperties: {}, maxProperties: MAX_ELEMENTS },
      rules: { maxItems: maxItems() },
    },
  )
  provider_tokens_set?: unknown;
}

const NOTHING = { type: 'object' as const, additionalProperties: false, example: {} };

@ApiSchema({ name: 'StoredUserSecrets' })
class ShownSecretsStoreDto {
  @ApiProperty(NOTHING) provider_tokens: Record<string, never>;
  @ApiProperty(NOTHING) custom_secrets: Record<string, never>;
}

/** Response of `GET /api/settings`: every member of the settings; secrets only as "is set". */
export class StoredSettingsDto implements ShownSettings {
  @OrNull('en') language: string | null;
  @OrNull('CodeActAgent') agent: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 100 }) max_iterations: number | null;
  @OrNull('llm') security_analyzer: string | null;
  @ApiProperty({ type: Boolean, nullable: true, example: false }) confirmation_mode: boolean | null;
  @OrNull('provider/model-1') llm_model: string | null;
  @OrNull(null, { description: 'Always null; see llm_api_key_set.' }) llm_api_key: null;
  @OrNull('https://llm.example.com/v1') llm_base_url: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 1 }) remote_runtime_resource_factor: number | null;

  @ApiProperty({ type: ShownSecretsStoreDto, description: 'Always empty; see provider_tokens_set.' })
  secrets_store: ShownSecretsStoreDto;

  @ApiProperty({ example: true }) enable_default_condenser: boolean;
  @ApiProperty({ example: false }) enable_sound_notifications: boolean;
  @ApiProperty({ example: true }) enable_proactive_conversation_starters: boolean;
  @ApiProperty({ example: true }) enable_solvability_analysis: boolean;
  @ApiProperty({ type: Boolean, nullable: true, example: false }) user_consents_to_analytics: boolean | null;
  @OrNull('docker.io/library/debian:13') sandbox_base_container_image: string | null;
  @OrNull('registry.example.com/sandbox:1') sandbox_runtime_container_image: string | null;
  @ApiProperty({ type: StoredMcpConfigDto, nullable: true }) mcp_config: StoredMcpConfigDto | null;
  @OrNull(null, { description: 'Always null; see search_api_key_set.' }) search_api_key: null;
  @OrNull(null, { description: 'Always null; see sandbox_api_key_set.' }) sandbox_api_key: null;
  @ApiProperty({ type: Number, nullable: true, example: 2.5 }) max_budget_per_task: number | null;
  @OrNull('ada@example.com') email: string | null;
  @ApiProperty({ type: Boolean, nullable: true, example: true }) email_verified: boolean | null;
  @OrNull('Ada Lovelace') git_user_name: string | null;
  @OrNull('ada@example.com') git_user_email: string | null;
  @OrNull('never') fork: string | null;
  @ApiProperty({ type: 'integer', nullable: true, example: 50 }) clone_depth: number | null;
  @OrNull('blob:none') clone_filter: CloneFilter | null;
  @ApiProperty({ example: true }) llm_api_key_set: boolean;
  @ApiProperty({ example: false }) search_api_key_set: boolean;
  @ApiProperty({ example: false }) sandbox_api_key_set: boolean;

  @Shown(
    'Providers with a stored token, and the host it is for (null: the public service).',
    { github: null, gitlab: 'git.example.com' },
    { type: 'object', additionalProperties: { type: 'string', nullable: true } },
  )
  provider_tokens_set: Record<string, string | null>;

  @Shown(
    "Whose key conversations use: `operator` where the user has none, and the model is the operator's too; null while there is none.",
    'user',
    { enum: LLM_SOURCES, type: 'string', nullable: true },
  )
  llm_source: LlmSource;
}

export function toStoredSettingsDto(row: SettingsRow): StoredSettingsDto {
  return shownSettings(row);
}
