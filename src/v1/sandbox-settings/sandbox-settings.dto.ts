import { ApiProperty, ApiSchema, OmitType, PickType } from '@nestjs/swagger';
import type { JsonObject } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { ANY_OBJECT, Shown, ShownOrNull } from '@slipway/api/openapi/responses.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import { StoredSettingsDto } from '../../settings/flat/settings.dto.js';
import { ANY_VALUE, ShownProfilesDto } from '../../settings/nested/nested-settings.dto.js';
import { CustomSecretName, SecretDescriptionDto } from '../../settings/secrets/secrets.dto.js';

export class SandboxIdDto {
  @Text('Id of the sandbox whose key is presented.', {
    required: true,
    example: '6rXhcJ9tUqYt7Gm1aPz2Kw',
    form: { pattern: '^[0-9A-Za-z_-]{1,64}$' },
    rule: (id) => (/^[0-9A-Za-z_-]{1,64}$/.test(id) ? null : 'Expected the id of a sandbox.'),
  })
  sandbox_id: string;
}

export class SandboxSecretPathDto extends SandboxIdDto {
  @CustomSecretName('Name of the secret.') secret_name: string;
}

@ApiSchema({ name: 'SecretNameItem' })
class SandboxSecretDto extends PickType(SecretDescriptionDto, ['name', 'description']) {}

@ApiSchema({ name: 'SecretNamesResponse' })
export class SandboxSecretsDto {
  @ApiProperty({ type: [SandboxSecretDto] }) secrets: SandboxSecretDto[];
}

export class UserInfoQueryDto {
  @Flag(
    'Whether keys are shown in clear. Needs the key of a running sandbox of the user in `X-Session-API-Key`, and the key of the user in `Authorization` or `X-Access-Token`.',
    { default: false, example: false },
  )
  expose_secrets?: boolean;
}

const KEY = 'null when it is not set, else the mask, or with `expose_secrets` the key itself.';

const PREFERENCE = {
  description: 'As it was stored with `POST /api/v1/settings`; null when it was not.',
  ...ANY_VALUE,
};

export class UserInfoDto extends OmitType(StoredSettingsDto, [
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
] as const) {
  @ApiProperty({ format: 'uuid', example: '3fa85f64-5717-4562-b3fc-2c963f66afa6' }) id: string;
  @ShownOrNull(KEY, MASK) llm_api_key: string | null;
  @ShownOrNull(KEY, MASK) search_api_key: string | null;
  @ShownOrNull(KEY, MASK) sandbox_api_key: string | null;

  @Shown('Providers whose token was stored and has not been accepted yet.', [], {
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    isArray: true,
  })
  provider_tokens_unverified: ProviderType[];

  @Shown(
    'As `GET /api/v1/settings` shows them, but for its keys: masked, or with `expose_secrets` in clear.',
    { agent: 'CodeActAgent' },
    ANY_OBJECT,
  )
  agent_settings: JsonObject;

  @ApiProperty({ ...ANY_OBJECT, example: { max_iterations: 500 } }) conversation_settings: JsonObject;

  @ApiProperty({ type: ShownProfilesDto, description: 'Keys are masked, or with `expose_secrets` in clear.' })
  llm_profiles: ShownProfilesDto;

  @ApiProperty({ ...PREFERENCE, example: null }) disabled_skills: unknown;
  @ApiProperty({ ...PREFERENCE, example: 'NO_GROUPING' }) sandbox_grouping_strategy: unknown;
  @ApiProperty({ ...PREFERENCE, example: null }) default_sandbox_spec_id: unknown;
}
