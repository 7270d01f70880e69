import { ApiProperty } from '@nestjs/swagger';
import { isArray, isIn } from 'class-validator';
import { type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { Shown, ShownOrNull } from '@slipway/api/openapi/responses.js';
import { field, maxItems, must } from '@slipway/api/validation/field.js';
import { Integer, MAX_TEXT } from '@slipway/api/validation/field-decorators.js';
import {
  GitProviderError,
  PROVIDER_TYPES,
  type ProviderErrorCode,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';
import { noGitProvider } from '../git-providers/git-provider-problem.js';
import { ShownProvider } from '../git-providers/repository-fields.js';
import { type Candidate, TASK_TYPES, type TaskType } from './collect-candidates.js';
import { allProvidersFailed, type ProviderFailure } from './provider-status.js';

export class SuggestedTaskDto {
  @ShownProvider({ description: 'Where the repository is.' }) git_provider: ProviderType;
  @Shown('What to do.', 'FAILING_CHECKS', { enum: TASK_TYPES, enumName: 'TaskType' }) task_type: TaskType;
  @ApiProperty({ description: 'Full name of the repository.', example: 'acme/checkout' }) repo: string;

  @Shown('Number of the issue, pull or merge request; 0 for CREATE_MICROAGENT.', 128, { type: 'integer' })
  issue_number: number;

  @Shown('Title as its author wrote it, at most 256 characters.', 'Retry card payments') title: string;
}

export class LinkedTaskDto extends SuggestedTaskDto {
  @ShownOrNull('Its page on the host.', 'https://github.com/acme/checkout/pull/128') url: string | null;
}

export const PROVIDER_STATUS_HEADER = {
  description:
    'How each provider took part (structured list, RFC 9651): `status` is ok, partial, stale or error; `code` says why, `detail` what the host said of it, ' +
    '`count` how many tasks are in the answer, `age` and `retry_after` are seconds, `truncated` tells that something was cut.',
  schema: { type: 'string' as const },
  example: 'github;status=ok;count=2, gitlab;status=error;code=rate_limited;retry_after=41',
};

const failed = (code: ProviderErrorCode, provider: ProviderType = 'github'): ProviderFailure => ({
  provider,
  error: new GitProviderError(code, code === 'rate_limited' ? { retryAfterSeconds: 41 } : {}),
});

export const SUGGESTED_TASKS_PROBLEMS: DocumentedProblem[] = [
  thrown(noGitProvider(), 'No valid API key, no stored token, or every provider refused its token'),
  thrown(allProvidersFailed([failed('unauthorized')])),
  thrown(
    allProvidersFailed([failed('rate_limited')]),
    'Too many requests of this user, or every provider limits requests',
  ),
  thrown(
    allProvidersFailed([failed('unavailable'), failed('rate_limited', 'gitlab')]),
    'No provider answered',
  ),
  thrown(allProvidersFailed([failed('timeout')]), 'No provider answered in time'),
];

export function toSuggestedTaskDto(task: Candidate): SuggestedTaskDto {
  return {
    git_provider: task.provider,
    task_type: task.type,
    repo: task.repository,
    issue_number: task.number,
    title: task.title,
  };
}

export function toLinkedTaskDto(task: Candidate): LinkedTaskDto {
  return Object.assign(toSuggestedTaskDto(task), { url: task.url });
}

const MAX_WORDS = 100;

/** A query parameter with a comma list of known words; arrives as an array. */
function CommaList(description: string, values: readonly string[]): PropertyDecorator {
  const areKnown = (words: unknown): boolean =>
    Array.isArray(words) && words.every((word) => isIn(word, values));
  return field(
    description,
    { example: [...values] },
    {
      schema: {
        type: 'array',
        style: 'form',
        explode: false,
        minItems: 1,
        maxItems: MAX_WORDS,
        items: { type: 'string', enum: [...values] },
      },
      coerce: (value) =>
        typeof value === 'string' && value.length <= MAX_TEXT
          ? value.split(',').map((word) => word.trim())
          : value,
      rules: {
        isArray: must(isArray, 'string_type', 'Expected one comma-separated list.'),
        arrayMaxSize: maxItems(MAX_WORDS, 'words'),
        isIn: must(areKnown, 'enum', `Expected a comma list of: ${values.join(', ')}.`),
      },
    },
  );
}

export class SuggestedTasksQueryDto {
  @CommaList('Only tasks of these types; all by default.', TASK_TYPES) task_types?: TaskType[];
  @CommaList('Ask only these providers; all by default.', PROVIDER_TYPES) providers?: ProviderType[];
  @Integer('Tasks in the answer at most.', { minimum: 1, maximum: 200, default: 100 }) limit?: number;
}
