import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiHeader, ApiOkResponse, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../../../common/openapi/problems.js';
import { ApiBodyExamples } from '../../../common/openapi/responses.js';
import { TOO_MANY_SANDBOXES } from '../../sandboxes/api/sandboxes.openapi.js';
import { StartConversationDto } from './dto/start-conversation.dto.js';
import { StartTaskDto, StartTaskPageDto } from './dto/start-task.dto.js';

/** Example bodies of `POST /api/v1/app-conversations`. */
const START_CONVERSATION_EXAMPLES = {
  plain: {
    summary: 'A task in a repository',
    value: {
      initial_message: { content: [{ type: 'text', text: 'Add a test for the parser.' }] },
      selected_repository: 'octo/app',
      selected_branch: 'main',
      git_provider: 'github',
    },
  },
  suggestedTask: {
    summary: 'A suggested task, as GET /api/user/suggested-tasks gave it',
    value: {
      suggested_task: {
        git_provider: 'github',
        task_type: 'FAILING_CHECKS',
        repo: 'octo/app',
        issue_number: 15,
        title: 'Retry card payments',
      },
    },
  },
  withSecrets: {
    summary: 'Without a repository, with an image, a model and a secret for this conversation',
    value: {
      title: 'Screen shots',
      llm_model: 'provider/model-1',
      initial_message: {
        content: [
          { type: 'text', text: 'What is wrong on this page?' },
          { type: 'image', image_urls: ['https://images.example.com/screen.png'] },
        ],
      },
      secrets: { DEPLOY_TOKEN: 'secret-example' },
    },
  },
};

const IDEMPOTENCY_KEY = ApiHeader({
  name: 'Idempotency-Key',
  description: 'A repetition of the request under this key answers the same task, for 24 hours.',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  example: 'f1a2b3c4-7d6e-4f50-8a9b-0c1d2e3f4a5b',
});

const INVALID_REPOSITORY = invalidInput(
  ['body', 'selected_repository'],
  'value_error',
  'Expected the full name of a repository, such as octo/app, not its address.',
);

const QUOTA_EXCEEDED: DocumentedProblem = {
  status: 429,
  code: 'sandbox_limit',
  detail: 'As many of your sandboxes run as may at a time (5). Pause or delete one, then try again.',
  description:
    'Too many requests, too many starts that wait for a place, or no place at all where none is made ' +
    '(SANDBOX_LIMIT_POLICY)',
};

const TOO_MANY_CONVERSATIONS: DocumentedProblem = {
  status: 409,
  code: 'conversation_limit',
  detail:
    'You have 10000 conversations, the most that are kept. Delete some of them (DELETE /api/v1/app-conversations/{id}), then try again.',
  description:
    'As many conversations or sandboxes as one user may have (MAX_CONVERSATIONS_PER_USER, MAX_SANDBOXES_PER_USER)',
};

/** Documents `POST /api/v1/app-conversations`. */
export function StartConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'start_app_conversation',
      summary: 'Start a conversation',
      description:
        'Answers at once with a start task; a sandbox is made, the repository cloned and the agent started in the ' +
        'background. Ask `GET /api/v1/app-conversations/start-tasks?ids=` until it is READY, and has the id of the ' +
        'conversation, or ERROR, and says why. Where as many sandboxes run as may, the longest idle one is paused, ' +
        'which `detail` says, and while all are busy the start waits, unless the operator wants it refused then.',
    }),
    IDEMPOTENCY_KEY,
    ApiBodyExamples(StartConversationDto, START_CONVERSATION_EXAMPLES),
    ApiOkResponse({ type: StartTaskDto, description: 'The start task' }),
    ApiProblems(TOO_MANY_CONVERSATIONS, TOO_MANY_SANDBOXES, 413, 415, QUOTA_EXCEEDED, INVALID_REPOSITORY),
  );
}

/** Documents `POST /api/v1/app-conversations/stream-start`. */
export function StreamStartOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(StartTaskDto),
    ApiOperation({
      operationId: 'stream_app_conversation_start',
      summary: 'Start a conversation and watch',
      description:
        'Like `POST /api/v1/app-conversations`, but the answer stays open: an array that gets the task again with each ' +
        'change and ends with READY or ERROR. Whoever hangs up misses only the rest of the answer.',
    }),
    IDEMPOTENCY_KEY,
    ApiBodyExamples(StartConversationDto, { plain: START_CONVERSATION_EXAMPLES.plain }),
    ApiOkResponse({
      description: 'The start task as it goes on',
      schema: { type: 'array', items: { $ref: getSchemaPath(StartTaskDto) } },
    }),
    ApiProblems(TOO_MANY_CONVERSATIONS, TOO_MANY_SANDBOXES, 413, 415, QUOTA_EXCEEDED, INVALID_REPOSITORY),
  );
}

/** Documents `GET /api/v1/app-conversations/start-tasks/search`. */
export function SearchStartTasksOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_app_conversation_start_tasks',
      summary: 'List start tasks',
      description: 'Newest first unless another order is asked for.',
    }),
    ApiOkResponse({ type: StartTaskPageDto, description: 'A page of start tasks' }),
    ApiProblems(
      invalidInput(
        ['query', 'sort_order'],
        'enum',
        'Expected one of: CREATED_AT, CREATED_AT_DESC, UPDATED_AT, UPDATED_AT_DESC.',
      ),
    ),
  );
}

/** Documents `GET /api/v1/app-conversations/start-tasks/count`. */
export function CountStartTasksOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ operationId: 'count_app_conversation_start_tasks', summary: 'Count start tasks' }),
    ApiOkResponse({ description: 'How many there are', schema: { type: 'integer', example: 3 } }),
    ApiProblems(
      invalidInput(
        ['query', 'conversation_id__eq'],
        'uuid_parsing',
        'Expected a UUID: 32 hexadecimal digits.',
      ),
    ),
  );
}

/** Documents `GET /api/v1/app-conversations/start-tasks`. */
export function GetStartTasksOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(StartTaskDto),
    ApiOperation({
      operationId: 'get_app_conversation_start_tasks',
      summary: 'Look up start tasks',
      description: 'In the order of the ids asked for, with null for each that is unknown.',
    }),
    ApiOkResponse({
      description: 'One element for each id',
      schema: {
        type: 'array',
        items: { oneOf: [{ $ref: getSchemaPath(StartTaskDto) }, { type: 'null' }] },
      },
    }),
    ApiProblems(invalidInput(['query', 'ids'], 'missing', 'This member is required.')),
  );
}
