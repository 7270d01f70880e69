import { ApiProperty } from '@nestjs/swagger';
import { PROVIDER_TYPES, type ProviderType } from '../git-providers/git-provider.js';

export class ServerFeatureFlagsDto {
  @ApiProperty({ example: false }) ENABLE_BILLING: boolean;
  @ApiProperty({ example: false }) HIDE_LLM_SETTINGS: boolean;
  @ApiProperty({ example: false }) ENABLE_JIRA: boolean;
  @ApiProperty({ example: false }) ENABLE_JIRA_DC: boolean;
  @ApiProperty({ example: false }) ENABLE_LINEAR: boolean;
}

export class ServerConfigDto {
  @ApiProperty({ enum: ['oss'], description: 'Nobody signs in: requests carry a key.', example: 'oss' })
  APP_MODE: 'oss';

  @ApiProperty({ description: 'Empty: there is no sign-in with GitHub.', example: '' })
  GITHUB_CLIENT_ID: string;

  @ApiProperty({ description: 'Empty: nothing is measured.', example: '' }) POSTHOG_CLIENT_KEY: string;

  @ApiProperty({
    enum: PROVIDER_TYPES,
    enumName: 'ProviderType',
    isArray: true,
    example: ['github', 'gitlab', 'bitbucket'],
  })
  PROVIDERS_CONFIGURED: ProviderType[];

  @ApiProperty({ type: ServerFeatureFlagsDto }) FEATURE_FLAGS: ServerFeatureFlagsDto;
}

export function toServerConfigDto(providers: readonly ProviderType[]): ServerConfigDto {
  return {
    APP_MODE: 'oss',
    GITHUB_CLIENT_ID: '',
    POSTHOG_CLIENT_KEY: '',
    PROVIDERS_CONFIGURED: [...providers],
    FEATURE_FLAGS: {
      ENABLE_BILLING: false,
      HIDE_LLM_SETTINGS: false,
      ENABLE_JIRA: false,
      ENABLE_JIRA_DC: false,
      ENABLE_LINEAR: false,
    },
  };
}
