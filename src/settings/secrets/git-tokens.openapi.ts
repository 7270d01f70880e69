import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { ApiBodyExamples } from '../../common/openapi/responses.js';
import { PROVIDER_TYPES } from '../../git-providers/git-provider.js';
import { INVALID_TOKEN } from '../../git-providers/git-providers.openapi.js';
import { AddGitProvidersDto, GitProvidersStoredDto, GitProvidersUnsetDto } from './git-tokens.dto.js';

/** Bodies of `POST /api/add-git-providers` that the documents show. */
export const ADD_GIT_PROVIDERS_EXAMPLES = {
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
  remove: {
    summary: 'Remove one token, keep the others',
    value: { provider_tokens: { gitlab: null } },
  },
};

/** Answers of `POST /api/add-git-providers` that the documents show. */
const GIT_PROVIDERS_STORED_EXAMPLES = {
  verified: { summary: 'The provider knows the token', value: { message: 'Git providers stored' } },
  unverified: {
    summary: 'The provider could not be asked',
    value: {
      message: 'Git providers stored',
      warnings: [
        {
          provider: 'gitlab',
          code: 'unavailable',
          detail: 'The gitlab token was stored but not verified: the provider could not be reached.',
        },
      ],
    },
  },
};

/** Documents `POST /api/add-git-providers`, and its twin for newer clients. */
export function AddGitProvidersOperation(
  operationId = 'store_provider_tokens_api_add_git_providers_post',
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId,
      summary: 'Store git-provider tokens',
      description:
        'Every new token is checked with its own provider first; all of the request is stored, or nothing. A token whose provider gives no verdict is stored and named in `warnings`.',
    }),
    ApiBodyExamples(AddGitProvidersDto, ADD_GIT_PROVIDERS_EXAMPLES),
    ApiOkResponse({
      type: GitProvidersStoredDto,
      description: 'Successful Response',
      examples: GIT_PROVIDERS_STORED_EXAMPLES,
    }),
    ApiProblems(
      INVALID_TOKEN,
      413,
      415,
      invalidInput(
        ['body', 'provider_tokens', 'gitea', '[key]'],
        'enum',
        `Expected one of: ${PROVIDER_TYPES.join(', ')}.`,
      ),
    ),
  );
}

/** Documents `POST /api/unset-provider-tokens`. */
export function UnsetProviderTokensOperation(
  operationId = 'unset_provider_tokens_api_unset_provider_tokens_post',
): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId,
      summary: 'Remove all git-provider tokens',
      description: 'Needs no body. Removing them again changes nothing.',
    }),
    ApiOkResponse({ type: GitProvidersUnsetDto, description: 'Removed' }),
    ApiProblems(413, 415, invalidInput(['body'], 'json_invalid', 'Expected one complete JSON value.')),
  );
}
