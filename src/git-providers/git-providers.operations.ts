import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/api-problems.decorator.js';
import { GitProvidersStoredDto } from './dto/git-providers-stored.dto.js';
import { GitProvidersUnsetDto } from './dto/git-providers-unset.dto.js';
import { GitUserDto } from './dto/git-user.dto.js';

const INVALID_TOKEN = {
  status: 401,
  code: 'invalid_git_token',
  detail: 'Invalid token. Please make sure it is a valid github token.',
  description: 'No valid API key, or a token that its provider rejects',
} as const;

/** Documents `POST /api/add-git-providers`. */
export function AddGitProvidersOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Store git-provider tokens',
      description:
        'Every new token is checked with its own provider first; all of the request is stored, or nothing. A token whose provider gives no verdict is stored and named in `warnings`.',
    }),
    ApiOkResponse({ type: GitProvidersStoredDto, description: 'Successful Response' }),
    ApiProblems(INVALID_TOKEN, 413, 415, 422),
  );
}

/** Documents `POST /api/unset-provider-tokens`. */
export function UnsetProviderTokensOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Remove all git-provider tokens',
      description: 'Removing them again changes nothing.',
    }),
    ApiOkResponse({ type: GitProvidersUnsetDto, description: 'Removed' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/user/info`. */
export function GitUserOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      summary: 'Show the account at the git provider',
      description: 'Of the first provider with a token: github, gitlab, bitbucket, enterprise_sso.',
    }),
    ApiOkResponse({ type: GitUserDto, description: 'The account' }),
    ApiProblems(
      {
        status: 401,
        code: 'no_git_provider',
        detail: 'No providers set.',
        description: 'No valid API key, no stored token, or one that its provider rejects',
      },
      502,
      504,
    ),
  );
}
