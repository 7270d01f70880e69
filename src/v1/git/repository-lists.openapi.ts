import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../../common/openapi/problems.js';
import { PROVIDER_TYPES } from '../../git-providers/git-provider.js';
import { PROVIDER_STATUS_HEADER } from '../../suggested-tasks/suggested-tasks.openapi.js';
import { BranchPageDto, InstallationPageDto, RepositoryPageDto } from './repository-lists.dto.js';

/** Problems that any route which lists something of a git provider may return. */
export const LIST_PROBLEMS: (DocumentedProblem | number)[] = [
  {
    status: 401,
    code: 'no_git_provider',
    detail: 'No providers set.',
    description: 'No valid API key, no stored token for the provider, or one that it refuses',
  },
  {
    status: 401,
    code: 'invalid_git_token',
    detail: 'Invalid token. Please make sure it is a valid github token.',
  },
  502,
  504,
];

const UNKNOWN_REPOSITORY: DocumentedProblem = {
  status: 404,
  detail: 'At github, there is no such repository, or the token cannot see it.',
  description: 'Unknown to the provider, or not for this token',
};

const UNKNOWN_INSTALLATION: DocumentedProblem = {
  status: 404,
  detail: 'At github, there is no such installation, or the token cannot see it.',
  description: 'Unknown to the provider, or not for this token',
};

const UNKNOWN_PROVIDER = invalidInput(
  ['query', 'provider'],
  'enum',
  `Expected one of: ${PROVIDER_TYPES.join(', ')}.`,
);

/** Documents `GET /api/v1/git/repositories/search`. */
export function SearchRepositoriesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_repositories_api_v1_git_repositories_search_get',
      summary: 'Repositories of the user at a git provider',
      description:
        'Read from the provider and kept for a minute. X-Provider-Status tells when older data stands in for it.',
    }),
    listResponse(RepositoryPageDto, 'A page of repositories'),
    ApiProblems(...LIST_PROBLEMS, UNKNOWN_INSTALLATION, UNKNOWN_PROVIDER),
  );
}

/** Documents `GET /api/v1/git/branches/search`. */
export function SearchBranchesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_branches_api_v1_git_branches_search_get',
      summary: 'Branches of a repository at a git provider',
      description: 'Read from the provider and kept for a minute.',
    }),
    listResponse(BranchPageDto, 'A page of branches'),
    ApiProblems(...LIST_PROBLEMS, UNKNOWN_REPOSITORY, UNKNOWN_PROVIDER),
  );
}

/** Documents `GET /api/v1/git/installations/search`. */
export function SearchInstallationsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_user_installations_api_v1_git_installations_search_get',
      summary: 'What the repositories of a git provider can be narrowed down to',
      description:
        "Installations of a GitHub App, Bitbucket's workspaces or projects; none where the provider or the token has no such thing.",
    }),
    listResponse(InstallationPageDto, 'A page of installations'),
    ApiProblems(...LIST_PROBLEMS, UNKNOWN_PROVIDER),
  );
}

function listResponse(
  type: typeof RepositoryPageDto | typeof BranchPageDto | typeof InstallationPageDto,
  description: string,
): MethodDecorator & ClassDecorator {
  return ApiOkResponse({ type, description, headers: { 'X-Provider-Status': PROVIDER_STATUS_HEADER } });
}
