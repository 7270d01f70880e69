import { ApiProperty, ApiSchema, OmitType } from '@nestjs/swagger';
import { Flag } from '../../common/validation/number-fields.js';
import { Text } from '../../common/validation/text-fields.js';
import type { StoredMcpConfig } from '../../mcp-config/mcp-config.types.js';
import { MASK } from '../../common/secret-mask.js';
import type { AgentSecretDescription } from '../../settings/agent-secrets.reader.js';
import { CUSTOM_SECRET_FORM, customSecretNameProblem } from '../../settings/secrets.dto.js';
import type { SettingsKeys, SettingsRow } from '../../settings/settings-table.js';
import { StoredSettingsDto, toStoredSettingsDto } from '../../settings/stored-settings.dto.js';

/** Path of the routes of one sandbox. */
export class SandboxIdDto {
  @Text({
    required: true,
    description: 'Id of the sandbox whose key is presented.',
    example: '6rXhcJ9tUqYt7Gm1aPz2Kw',
    form: { pattern: '^[0-9A-Za-z_-]{1,64}$' },
    rule: (id) => (/^[0-9A-Za-z_-]{1,64}$/.test(id) ? null : 'Expected the id of a sandbox.'),
  })
  sandbox_id: string;
}

/** Path of the route of one secret. */
export class SandboxSecretPathDto extends SandboxIdDto {
  @Text({
    required: true,
    description: 'Name of the secret.',
    example: 'DEPLOY_TOKEN',
    form: CUSTOM_SECRET_FORM,
    rule: customSecretNameProblem,
  })
  secret_name: string;
}

@ApiSchema({ name: 'SecretNameItem' })
class SandboxSecretDto implements AgentSecretDescription {
  @ApiProperty({ example: 'DEPLOY_TOKEN' })
  name: string;

  @ApiProperty({ type: String, nullable: true, example: 'Token of the deployment service' })
  description: string | null;
}

/** Response of `GET /api/v1/sandboxes/{sandbox_id}/settings/secrets`; it never contains values. */
@ApiSchema({ name: 'SecretNamesResponse' })
export class SandboxSecretsDto {
  @ApiProperty({ type: [SandboxSecretDto] })
  secrets: SandboxSecretDto[];
}

/** Query of `GET /api/v1/users/me`. */
export class UserInfoQueryDto {
  @Flag({
    default: false,
    description:
      'Whether keys are shown in clear. Needs the key of a running sandbox of the user in `X-Session-API-Key`, and the key of the user in `Authorization` or `X-Access-Token`.',
    example: false,
  })
  expose_secrets?: boolean;
}

const KEY_PROPERTY = {
  type: String,
  nullable: true,
  description: 'null when it is not set, else the mask, or with `expose_secrets` the key itself.',
  example: MASK,
} as const;

/** Response of `GET /api/v1/users/me`: the user's id and settings. */
@ApiSchema({ name: 'UserInfo' })
export class UserInfoDto extends OmitType(StoredSettingsDto, [
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
] as const) {
  @ApiProperty({ format: 'uuid', example: '3fa85f64-5717-4562-b3fc-2c963f66afa6' })
  id: string;

  @ApiProperty(KEY_PROPERTY)
  llm_api_key: string | null;

  @ApiProperty(KEY_PROPERTY)
  search_api_key: string | null;

  @ApiProperty(KEY_PROPERTY)
  sandbox_api_key: string | null;
}

/** The secrets of a user's settings in clear. */
export interface ExposedSecrets {
  keys: SettingsKeys;
  mcpConfig: StoredMcpConfig | null;
}

/** @param exposed null: all secrets are masked */
export function toUserInfoDto(id: string, row: SettingsRow, exposed: ExposedSecrets | null): UserInfoDto {
  const shown: Omit<StoredSettingsDto, keyof SettingsKeys> = toStoredSettingsDto(row);
  return {
    id,
    ...shown,
    llm_api_key: exposed ? exposed.keys.llm_api_key : masked(row.llm_api_key_set),
    search_api_key: exposed ? exposed.keys.search_api_key : masked(row.search_api_key_set),
    sandbox_api_key: exposed ? exposed.keys.sandbox_api_key : masked(row.sandbox_api_key_set),
    mcp_config: exposed ? exposed.mcpConfig : row.mcp_config,
  };
}

function masked(isSet: boolean): string | null {
  return isSet ? MASK : null;
}
