import { ApiProperty, ApiSchema, OmitType } from '@nestjs/swagger';
import { MASK } from '../../../mcp-config/mask.js';
import type { StoredMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import { StoredSettingsDto } from '../../../settings/dto/stored-settings.dto.js';
import type { SettingsKeys } from '../../../settings/settings-keys.reader.js';
import { type SettingsRow, toStoredSettingsDto } from '../../../settings/settings-row.js';

const KEY = {
  type: String,
  nullable: true,
  description: 'null when it is not set, else the mask, or with `expose_secrets` the key itself.',
  example: MASK,
} as const;

/** Answer of `GET /api/v1/users/me`: the settings of the user, and who that is. */
@ApiSchema({ name: 'UserInfo' })
export class UserInfoDto extends OmitType(StoredSettingsDto, [
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
] as const) {
  @ApiProperty({ format: 'uuid', example: '3fa85f64-5717-4562-b3fc-2c963f66afa6' })
  id: string;

  @ApiProperty(KEY)
  llm_api_key: string | null;

  @ApiProperty(KEY)
  search_api_key: string | null;

  @ApiProperty(KEY)
  sandbox_api_key: string | null;
}

/** What of a user's settings is shown in clear. */
export interface ExposedSecrets {
  keys: SettingsKeys;
  mcpConfig: StoredMcpConfig | null;
}

/** @param exposed null: every secret is masked */
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
