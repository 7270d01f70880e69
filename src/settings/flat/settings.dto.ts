import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { isObject } from 'class-validator';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { unmaskableWarning } from '@slipway/common/secret-mask.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { ANY_OBJECT, OrNull, Shown, WarningsOf } from '@slipway/api/openapi/responses.js';
import {
  customRule,
  type DtoClass,
  field,
  MAX_ELEMENTS,
  maxItems,
  must,
} from '@slipway/api/validation/field.js';
import { TellsOtherMembers } from '@slipway/api/validation/unknown-members.js';
import {
  Choice,
  Decimal,
  Flag,
  FreeObject,
  Integer,
  MAX_SECRET,
  MAX_URL,
  Nested,
  NestedMap,
  Secret,
  sentenceRule,
  Text,
  TextList,
} from '@slipway/api/validation/field-decorators.js';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';
import type { ProviderTokenInputs } from '../../git-providers/tokens/plan-token-changes.js';
import { ProviderTokenMap } from '../secrets/git-tokens.dto.js';
import {
  type McpConfigDto,
  McpConfigField,
  StoredMcpConfigDto,
} from '@slipway/tool-servers/mcp-config.dto.js';
import { MODEL_WARNING_CODES, type ModelWarning } from '@slipway/models/model-check.js';
import { MODEL_USE_CODES } from '@slipway/settings/model-use.js';
import {
  CUSTOM_SECRET_FORM,
  customSecretNameProblem,
  CustomSecretValueDto,
  secretWarning,
} from '../secrets/secrets.dto.js';
import {
  memberSchema,
  SETTINGS,
  SETTINGS_COLUMNS,
  SETTINGS_KEY_COLUMNS,
  type SettingsColumn,
  type SettingsValues,
} from '@slipway/settings/settings.schema.js';
import {
  LAYER_OWNERS,
  type SettingsRow,
  type ShownSettings,
  shownSettings,
} from '@slipway/settings/settings-row.js';

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
  'from_organization',
  ...SETTINGS_KEY_COLUMNS.map((name) => `${name}_set`),
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
  return SETTINGS_COLUMNS.flatMap((member) => {
    const { nullKeeps, blankClears } = memberSchema(member);
    const isKept = nullKeeps && given[member] === null && (stored[member] ?? null) !== null;
    const hint = blankClears ? '; blank text clears it' : '';
    return isKept
      ? [{ code: 'null_keeps' as const, member, detail: `null keeps the stored value${hint}.` }]
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

function Members(members: Readonly<Record<string, PropertyDecorator>>): ClassDecorator {
  return ({ prototype }) => {
    for (const [name, decorate] of Object.entries(members)) {
      decorate(Object(prototype), name);
    }
  };
}

/** A class with these members, in their order: the compiler compares them with the type, and the document shows them. */
function withMembers<T extends object>(members: Record<keyof T, PropertyDecorator>): DtoClass<T> {
  @Members(members)
  class Base {}
  return Base as DtoClass<T>;
}

/** What follows from the table, with the members that have tables of their own in their places. */
function membersOf<Elsewhere extends string>(
  elsewhere: Record<Elsewhere, PropertyDecorator>,
  decorator: (name: SettingsColumn) => PropertyDecorator,
): Record<Elsewhere | SettingsColumn, PropertyDecorator> {
  const names = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[];
  return Object.fromEntries(
    names.map((name) => [name, elsewhere[name as Elsewhere] ?? decorator(name as SettingsColumn)]),
  ) as Record<Elsewhere | SettingsColumn, PropertyDecorator>;
}

/** A member of a request; absent is "unchanged". */
export function SettingMember(name: SettingsColumn): PropertyDecorator {
  const { type, description, examples, default: preset, ...rules } = memberSchema(name);
  const [example] = examples;
  const given = preset === undefined ? { nullable: true, example } : { default: preset, example };
  const bounds = {
    ...(rules.minimum !== undefined && { minimum: rules.minimum }),
    ...(rules.maximum !== undefined && { maximum: rules.maximum }),
  };
  switch (type) {
    case 'array':
      return TextList(description, {
        nullable: true,
        example,
        form: { maxItems: rules.maxItems ?? 0 },
        itemLength: rules.maxLength ?? 0,
      });
    case 'object':
      return FreeObject(description, { nullable: true, example, maxLength: rules.maxLength ?? 0 });
    case 'boolean':
      return Flag(description, given);
    case 'integer':
      return Integer(description, { ...given, ...bounds });
    case 'number':
      return Decimal(description, { ...given, minimum: rules.minimum ?? 0 });
    case 'string':
      if (rules.enum) {
        return Choice(description, { ...given, values: rules.enum });
      }
      if (rules.writeOnly) {
        // Copied keys bring a line break along, which no header can hold.
        return Secret(description, typeof example === 'string' ? example : '', { ...given, trim: true });
      }
      return rules.format === 'uri'
        ? Text(description, { ...given, ...ADDRESS })
        : Text(description, { ...given, ...(rules.maxLength && { maxLength: rules.maxLength }) });
  }
}

const ADDRESS = {
  trim: true,
  maxLength: MAX_URL,
  form: { pattern: String.raw`^\s*(?:${MODEL_ADDRESS}\s*)?$` },
  rule: (address: string): string | null =>
    address === '' ? null : addressProblem(address, ['http', 'https']),
};

type Body = { [Name in SettingsColumn]?: SettingsValues[Name] } & {
  secrets_store?: SecretsStoreDto;
  mcp_config?: McpConfigDto | null;
  provider_tokens_set?: unknown;
};

/** Body of `POST /api/settings`. Members left out keep their values; members it does not list are ignored, and named in `warnings`. */
@TellsOtherMembers()
export class SettingsDto extends withMembers<Body>({
  ...membersOf(
    {
      secrets_store: applyDecorators(
        customRule('isObject', must(isObject, 'value_error', 'Expected an object.')),
        Nested('Tokens and secrets to merge into the stored ones; stored elsewhere and never shown.', {
          type: SecretsStoreDto,
          nullIsAbsent: true,
        }),
      ),
      mcp_config: McpConfigField(),
    },
    SettingMember,
  ),
  // Nothing of it is kept, so all that matters is how much of it there is.
  provider_tokens_set: field(
    'As the response has it, whatever it says: a form that sends it sends back what it was shown, keys that it was not shown among it.',
    { example: { github: null } },
    {
      schema: { type: 'object', additionalProperties: {}, maxProperties: MAX_ELEMENTS },
      rules: { maxItems: maxItems() },
    },
  ),
}) {}

const NOTHING = { type: 'object' as const, additionalProperties: false, example: {} };

@ApiSchema({ name: 'StoredUserSecrets' })
class ShownSecretsStoreDto {
  @ApiProperty(NOTHING) provider_tokens: Record<string, never>;
  @ApiProperty(NOTHING) custom_secrets: Record<string, never>;
}

function ShownSetting(name: SettingsColumn): PropertyDecorator {
  const { type, examples, default: preset, writeOnly } = memberSchema(name);
  if (writeOnly) {
    return OrNull(null, { description: `Always null; see ${name}_set.` });
  }
  if (type === 'array') {
    return ApiProperty({ type: [String], nullable: true, example: examples.at(-1) });
  }
  if (type === 'object') {
    return ApiProperty({ ...ANY_OBJECT, nullable: true, example: examples.at(-1) });
  }
  return ApiProperty({ type, example: examples.at(-1), ...(preset === undefined && { nullable: true }) });
}

/** Response of `GET /api/settings`: every member of the settings; secrets only as "is set". */
export class StoredSettingsDto extends withMembers<ShownSettings>({
  ...membersOf(
    {
      secrets_store: ApiProperty({
        type: ShownSecretsStoreDto,
        description: 'Always empty; see provider_tokens_set.',
      }),
      mcp_config: ApiProperty({ type: StoredMcpConfigDto, nullable: true }),
    },
    ShownSetting,
  ),
  llm_api_key_set: ApiProperty({ type: Boolean, example: true }),
  search_api_key_set: ApiProperty({ type: Boolean, example: false }),
  sandbox_api_key_set: ApiProperty({ type: Boolean, example: false }),
  provider_tokens_set: Shown(
    'Providers with a stored token, and the host it is for (null: the public service).',
    { github: null, gitlab: 'git.example.com' },
    { type: 'object', additionalProperties: { type: 'string', nullable: true } },
  ),
  llm_source: Shown(
    'Whose key conversations use: `organization` or `operator` where the user has none, and the model is theirs too; null while there is none.',
    'user',
    { enum: LAYER_OWNERS, type: 'string', nullable: true },
  ),
  from_organization: Shown(
    "Members that the user has not set, and whose value is the organization's: sent back as they are shown, they stay so.",
    ['max_iterations'],
    { enum: SETTINGS_COLUMNS, isArray: true },
  ),
}) {}

export function toStoredSettingsDto(row: SettingsRow): StoredSettingsDto {
  return shownSettings(row);
}
