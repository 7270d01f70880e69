import { isIn } from 'class-validator';
import { ApiProperty } from '@nestjs/swagger';
import { must } from '@slipway/api/validation/field.js';
import { Flag, Instant, NestedMap, Text } from '@slipway/api/validation/field-decorators.js';
import { isGithubLogin } from '../../config/github-app-config.js';
import {
  PROVIDER_ERROR_CODES,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';
import {
  type ProviderTokenInput,
  refreshTokenProblem,
  TOKEN_FORM,
  type ProviderTokenInputs,
  type ProviderTokenWarning,
} from '../../git-providers/tokens/plan-token-changes.js';
import { badInput } from '@slipway/api/openapi/api-route.js';
import { WarningsOf } from '@slipway/api/openapi/responses.js';
import { INVALID_TOKEN } from '../../git-providers/git-provider-problem.js';
import { type McpConfigDto, McpConfigField } from '@slipway/tool-servers/mcp-config.dto.js';

const MAX_ACCOUNT_ID_LENGTH = 255;

class ProviderTokenDto implements ProviderTokenInput {
  @Text(
    'Token of the user at the provider. Absent, null or blank keeps the stored one. Bitbucket Cloud: `email:api_token`, or an OAuth or access token.',
    { nullable: true, secret: true, example: 'ghp_exampleExampleExampleExampleExample1', form: TOKEN_FORM },
  )
  token?: string | null;

  @Text(
    'Host of a self-managed installation; the operator must have allowed it. Absent, null or blank: the public service beside a new token, else the stored host. Another host needs the token again.',
    { nullable: true, example: 'git.example.com' },
  )
  host?: string | null;

  @Text('Id of the account at the provider; stored as given.', {
    nullable: true,
    example: '583231',
    form: { maxLength: MAX_ACCOUNT_ID_LENGTH },
    rule: (text) =>
      text.length <= MAX_ACCOUNT_ID_LENGTH
        ? null
        : `Expected an account id of at most ${MAX_ACCOUNT_ID_LENGTH} characters.`,
  })
  user_id?: string | null;

  @Text(
    'Renews the token before it ends, at the default address of a provider for which the operator has configured a client of OAuth. Comes together with the token.',
    {
      nullable: true,
      secret: true,
      example: 'ghr_exampleExampleExampleExample1',
      form: TOKEN_FORM,
      rule: refreshTokenProblem,
    },
  )
  refresh_token?: string | null;

  @Instant('When the token ends. Without it, the first use of the token renews it.', {
    nullable: true,
    example: '2030-01-31T12:00:00Z',
  })
  expires_at?: Date | null;

  @Flag(
    "GitHub: true lets installations of the operator's GitHub App stand in, in place of a token, where `GITHUB_APP_FOR` allows it.",
    { nullable: true, example: true },
  )
  installation?: boolean | null;

  @Text(
    'Login at the provider, for suggested tasks where an installation stands in. The one that the issuer says comes before it.',
    {
      nullable: true,
      example: 'octocat',
      form: { maxLength: 100, pattern: String.raw`^(?:\s*|[A-Za-z0-9][A-Za-z0-9_-]*)$` },
      rule: (text) => (text.trim() === '' || isGithubLogin(text) ? null : 'Expected a login at GitHub.'),
    },
  )
  login?: string | null;
}

/** Arrives as `ProviderTokenInputs`: a null map counts as absent, a null entry removes the token. */
export function ProviderTokenMap(): PropertyDecorator {
  const providers = PROVIDER_TYPES.join(', ');
  return NestedMap(
    `Tokens by provider (${providers}). Providers left out keep their token, null removes it.`,
    {
      type: ProviderTokenDto,
      nullIsAbsent: true,
      nullableValues: true,
      keyRule: must((key) => isIn(key, PROVIDER_TYPES), 'enum', `Expected one of: ${providers}.`),
      keySchema: { enum: PROVIDER_TYPES },
      example: { github: { token: 'ghp_exampleExampleExampleExampleExample1' }, gitlab: null },
    },
  );
}

export class AddGitProvidersDto {
  @McpConfigField() mcp_config?: McpConfigDto | null;
  @ProviderTokenMap() provider_tokens?: ProviderTokenInputs;
}

class ProviderTokenWarningDto {
  @ApiProperty({ enum: PROVIDER_TYPES, enumName: 'ProviderType', example: 'gitlab' }) provider: ProviderType;

  @ApiProperty({ enum: PROVIDER_ERROR_CODES, enumName: 'ProviderErrorCode', example: 'unavailable' })
  code: ProviderErrorCode;

  @ApiProperty({
    example: 'The gitlab token was stored but not verified: the provider could not be reached.',
  })
  detail: string;
}

export class GitProvidersStoredDto {
  @ApiProperty({ example: 'Git providers stored' }) message: string;

  @WarningsOf(ProviderTokenWarningDto, 'Tokens that were stored unverified; absent when there are none.')
  warnings?: ProviderTokenWarningDto[];
}

export function toGitProvidersStoredDto(warnings: readonly ProviderTokenWarning[]): GitProvidersStoredDto {
  return { message: 'Git providers stored', ...(warnings.length > 0 && { warnings: [...warnings] }) };
}

export const ADD_GIT_PROVIDERS_EXAMPLES = {
  blank: {
    summary: 'Put a token between the quotes; blank text keeps the stored one',
    value: { provider_tokens: { github: { token: '' } } },
  },
  github: {
    summary: 'A token for github.com',
    value: { provider_tokens: { github: { token: 'ghp_exampleExampleExampleExampleExample1' } } },
  },
  selfManaged: {
    summary: 'A token for a self-managed GitLab that the operator has allowed',
    value: { provider_tokens: { gitlab: { token: 'glpat-exampleExample1', host: 'git.example.com' } } },
  },
  bitbucket: {
    summary: 'An API token for Bitbucket Cloud, with the email address it belongs to',
    value: { provider_tokens: { bitbucket: { token: 'ada@example.com:ATATTexampleExample' } } },
  },
  installation: {
    summary: "The operator's GitHub App in place of a token",
    value: { provider_tokens: { github: { installation: true } } },
  },
  remove: { summary: 'Remove one token, keep the others', value: { provider_tokens: { gitlab: null } } },
};

/** What both routes that store tokens say of themselves. */
export const STORE_TOKENS = {
  summary: 'Store git-provider tokens',
  description:
    'Every new token is checked with its own provider first; all of the request is stored, or nothing. A token whose provider gives no verdict is stored and named in `warnings`.',
  answer: { type: GitProvidersStoredDto, description: 'Successful Response' },
  examples: ADD_GIT_PROVIDERS_EXAMPLES,
  problems: [INVALID_TOKEN],
  invalid: badInput(
    'body.provider_tokens.gitea.[key]',
    `Expected one of: ${PROVIDER_TYPES.join(', ')}.`,
    'enum',
  ),
};

export class GitProvidersUnsetDto {
  @ApiProperty({ example: 'Unset Git provider tokens' }) message: string;
}

/** What both routes that remove tokens say of themselves. A body is not needed, but read. */
export const REMOVE_TOKENS = {
  summary: 'Remove all git-provider tokens',
  description: 'Needs no body. Removing them again changes nothing.',
  answer: { type: GitProvidersUnsetDto, description: 'Removed' },
  problems: [413, 415, 422],
};

export const TOKENS_REMOVED: GitProvidersUnsetDto = { message: 'Unset Git provider tokens' };
