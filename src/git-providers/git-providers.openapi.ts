import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems } from '../common/openapi/problems.js';
import { GitUserDto } from './git-providers.dto.js';

export const INVALID_TOKEN = {
  status: 401,
  code: 'invalid_git_token',
  detail: 'Invalid token. Please make sure it is a valid github token.',
  description: 'No valid API key, or a token that its provider rejects',
} as const;

/** Documents `GET /api/user/info`, and the same under the name that V1 clients know. */
export function GitUserOperation(operationId: string): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId,
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
      INVALID_TOKEN,
      502,
      504,
    ),
  );
}
