import { ApiProperty } from '@nestjs/swagger';
import { Always, Shown } from '../common/openapi/responses.js';
import { PROVIDER_TYPES, type ProviderType } from '../git-providers/git-provider.js';

const FEATURE_FLAGS = {
  ENABLE_BILLING: false,
  HIDE_LLM_SETTINGS: false,
  ENABLE_JIRA: false,
  ENABLE_JIRA_DC: false,
  ENABLE_LINEAR: false,
};

@Always(FEATURE_FLAGS)
class ServerFeatureFlagsDto {}

export class ServerConfigDto {
  @Shown('Nobody signs in: requests carry a key.', 'oss', { enum: ['oss'] }) APP_MODE: 'oss';
  @Shown('Empty: there is no sign-in with GitHub.', '') GITHUB_CLIENT_ID: string;
  @ApiProperty({ description: 'Empty: nothing is measured.', example: '' }) POSTHOG_CLIENT_KEY: string;

  @ApiProperty({
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    isArray: true,
    example: ['github', 'gitlab', 'bitbucket'],
  })
  PROVIDERS_CONFIGURED: ProviderType[];

  @ApiProperty({ type: ServerFeatureFlagsDto }) FEATURE_FLAGS: typeof FEATURE_FLAGS;
}

export function toServerConfigDto(providers: readonly ProviderType[]): ServerConfigDto {
  return {
    APP_MODE: 'oss',
    GITHUB_CLIENT_ID: '',
    POSTHOG_CLIENT_KEY: '',
    PROVIDERS_CONFIGURED: [...providers],
    FEATURE_FLAGS,
  };
}
