import { applyDecorators } from '@nestjs/common';
import { ApiHeader, ApiOkResponse, ApiOperation, ApiQuery, ApiResponse } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../common/openapi/problems.js';
import { MAX_WORDS } from '../common/validation/text-fields.js';
import { PROVIDER_TYPES } from '../git-providers/git-provider.js';
import { TASK_TYPES } from './candidate.js';
import { SuggestedTaskDto } from './suggested-tasks.dto.js';

/** The answer that the documents show. */
export const SUGGESTED_TASKS_EXAMPLE: SuggestedTaskDto[] = [
  {
    git_provider: 'github',
    task_type: 'FAILING_CHECKS',
    repo: 'acme/checkout',
    issue_number: 128,
    title: 'Retry card payments that time out',
  },
  {
    git_provider: 'gitlab',
    task_type: 'OPEN_ISSUE',
    repo: 'acme/platform/billing',
    issue_number: 41,
    title: 'Invoices show the wrong currency',
  },
  {
    git_provider: 'bitbucket',
    task_type: 'CREATE_MICROAGENT',
    repo: 'acme/warehouse',
    issue_number: 0,
    title: 'Add agent instructions to acme/warehouse',
  },
];

const TAG_EXAMPLE = '"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"';

const ETAG = {
  description: 'Strong; send it back in If-None-Match.',
  schema: { type: 'string' as const },
  example: TAG_EXAMPLE,
};

export const PROVIDER_STATUS_HEADER = {
  description:
    'How each provider took part (structured list, RFC 9651): `status` is ok, partial, stale or error; `code` says why, `detail` what the host said of it, ' +
    '`count` how many tasks are in the answer, `age` and `retry_after` are seconds, `truncated` tells that something was cut.',
  schema: { type: 'string' as const },
  example: 'github;status=ok;count=2, gitlab;status=error;code=rate_limited;retry_after=41',
};

const NO_PROVIDERS = {
  status: 401,
  code: 'no_git_provider',
  detail: 'No providers set.',
  description: 'No valid API key, no stored token, or every provider refused its token',
} as const;

const ALL_REFUSED = {
  status: 401,
  code: 'git_providers_failed',
  detail: 'Every git provider refused its token; store new ones with POST /api/add-git-providers.',
  extensions: { errors: [{ provider: 'github', code: 'unauthorized', retry_after: null }] },
} as const;

const ALL_LIMITED = {
  status: 429,
  code: 'git_providers_failed',
  detail: 'Every git provider limits requests at the moment; wait as long as Retry-After says.',
  description: 'Too many requests of this user, or every provider limits requests',
  extensions: { errors: [{ provider: 'github', code: 'rate_limited', retry_after: 41 }] },
} as const;

const ALL_FAILED = {
  status: 502,
  code: 'git_providers_failed',
  detail: 'No git provider gave a usable answer; `errors` says why for each.',
  description: 'No provider answered',
  extensions: {
    errors: [
      { provider: 'github', code: 'unavailable', retry_after: null },
      { provider: 'gitlab', code: 'rate_limited', retry_after: 41 },
    ],
  },
} as const;

const ALL_SLOW = {
  status: 504,
  code: 'git_providers_failed',
  detail: 'No git provider answered in time; try again.',
  description: 'No provider answered in time',
  extensions: { errors: [{ provider: 'github', code: 'timeout', retry_after: null }] },
} as const;

/** Error responses of all routes that find suggested tasks. */
export const SUGGESTED_TASKS_PROBLEMS: DocumentedProblem[] = [
  NO_PROVIDERS,
  ALL_REFUSED,
  ALL_LIMITED,
  ALL_FAILED,
  ALL_SLOW,
];

/** Documents `GET /api/user/suggested-tasks`. */
export function SuggestedTasksOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_suggested_tasks_api_user_suggested_tasks_get',
      summary: 'Suggested tasks of the user',
      description:
        'Open work across the most recently pushed repositories of every provider with a stored token: merge conflicts, ' +
        'failing checks, unresolved review comments, assigned issues, open pull requests, and repositories without ' +
        'instructions for agents. Providers that fail do not hide the others; X-Provider-Status says how each took part.',
    }),
    commaList('task_types', TASK_TYPES, 'Only tasks of these types; all by default.'),
    commaList('providers', PROVIDER_TYPES, 'Ask only these providers; all by default.'),
    ApiHeader({
      name: 'If-None-Match',
      description: 'The ETag of an earlier answer: 304 while nothing has changed.',
      schema: { type: 'string', maxLength: 16_384 },
      example: TAG_EXAMPLE,
    }),
    ApiOkResponse({
      type: [SuggestedTaskDto],
      description: 'Successful Response',
      headers: { ETag: ETAG, 'X-Provider-Status': PROVIDER_STATUS_HEADER },
      example: SUGGESTED_TASKS_EXAMPLE,
    }),
    ApiResponse({
      status: 304,
      description: 'Nothing has changed since the answer with this ETag',
      headers: { ETag: ETAG, 'X-Provider-Status': PROVIDER_STATUS_HEADER },
    }),
    ApiProblems(
      ...SUGGESTED_TASKS_PROBLEMS,
      invalidInput(['query', 'task_types'], 'enum', `Expected a comma list of: ${TASK_TYPES.join(', ')}.`),
    ),
  );
}

/** A list in one query parameter, its words separated by commas. "Try it out" offers all of them. */
function commaList(
  name: string,
  values: readonly string[],
  description: string,
): MethodDecorator & ClassDecorator {
  return ApiQuery({
    name,
    required: false,
    description,
    style: 'form',
    explode: false,
    schema: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_WORDS,
      items: { type: 'string', enum: [...values] },
      example: [...values],
    },
  });
}
