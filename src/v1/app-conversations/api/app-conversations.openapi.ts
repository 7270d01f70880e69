import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../../../common/openapi/problems.js';
import { SuccessDto } from '../../../common/openapi/responses.js';
import { UNKNOWN_CONVERSATION } from '../../events/events.openapi.js';
import { AppConversationDto, AppConversationPageDto } from './dto/conversation.dto.js';

/** How routes fail that need the sandbox of a conversation to run. */
export const SANDBOX_PROBLEMS: DocumentedProblem[] = [
  {
    status: 409,
    code: 'sandbox_not_running',
    detail:
      'The sandbox is PAUSED; resume it first with POST /api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/resume.',
    description: 'The sandbox is PAUSED or STARTING, or the state of the conversation forbids it',
  },
  {
    status: 410,
    code: 'sandbox_not_running',
    detail: 'The sandbox is MISSING: the conversation can be read, but not continued.',
    description: 'The sandbox is gone',
  },
  {
    status: 502,
    code: 'upstream_error',
    detail: 'The agent server of the sandbox did not answer; try again.',
    description: 'The agent server failed',
  },
  {
    status: 503,
    code: 'sandbox_not_running',
    detail:
      'The sandbox is in ERROR (its status_detail says why); start it again with POST /api/v1/sandboxes/3kTMd9ZpQ2sVbX7cRfLw1A/resume.',
    description: 'The sandbox failed, or the service is not available at the moment',
  },
];

const INVALID_LIMIT = invalidInput(
  ['query', 'limit'],
  'less_than_equal',
  'Expected a number of at most 100.',
);
const INVALID_TIME = invalidInput(
  ['query', 'created_at__gte'],
  'datetime_parsing',
  'Expected a time such as 2030-01-31T12:00:00Z.',
);

/** Documents `GET /api/v1/app-conversations/search`. */
export function SearchConversationsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_app_conversations',
      summary: 'List conversations',
      description: 'Newest first; without those that are part of another one unless they are asked for.',
    }),
    ApiOkResponse({ type: AppConversationPageDto, description: 'A page of conversations' }),
    ApiProblems(INVALID_LIMIT),
  );
}

/** Documents `GET /api/v1/app-conversations/count`. */
export function CountConversationsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'count_app_conversations',
      summary: 'Count conversations',
      description: 'Those that are part of another one count as well.',
    }),
    ApiOkResponse({ description: 'How many there are', schema: { type: 'integer', example: 12 } }),
    ApiProblems(INVALID_TIME),
  );
}

/** Documents `GET /api/v1/app-conversations`. */
export function ListConversationsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiExtraModels(AppConversationDto, AppConversationPageDto),
    ApiOperation({
      operationId: 'list_app_conversations',
      summary: 'List conversations, or look some up',
      description:
        'With `ids` a list in their order, with null for each that is unknown. Without, the same as ' +
        '`/api/v1/app-conversations/search`.',
    }),
    ApiOkResponse({
      description: 'A page of conversations, or one element for each id',
      schema: {
        oneOf: [
          { $ref: getSchemaPath(AppConversationPageDto) },
          {
            type: 'array',
            items: { oneOf: [{ $ref: getSchemaPath(AppConversationDto) }, { type: 'null' }] },
          },
        ],
      },
    }),
    ApiProblems(INVALID_LIMIT),
  );
}

/** Documents `PATCH /api/v1/app-conversations/{id}`. */
export function UpdateConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'update_app_conversation',
      summary: 'Change what is noted about a conversation',
      description: 'Title, repository, branch, provider. A title of yours is not replaced any more.',
    }),
    ApiOkResponse({ type: AppConversationDto, description: 'The conversation as it is now' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      413,
      415,
      invalidInput(['body', 'title'], 'value_error', 'Expected at most 200 characters.'),
    ),
  );
}

/** Documents `DELETE /api/v1/app-conversations/{id}`. */
export function DeleteConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_app_conversation',
      summary: 'Delete a conversation',
      description:
        'With its events, and with its sandbox when no other conversation uses that; whatever state they are in. One ' +
        'that is being started is not started any more. Conversations that were part of it stay, on their own.',
    }),
    ApiOkResponse({ type: SuccessDto, description: 'Deleted; the sandbox goes in the background' }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.'),
    ),
  );
}

/** Documents `GET /api/v1/app-conversations/{id}/download`. */
export function DownloadOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'export_conversation',
      summary: 'Download a conversation',
      description:
        'A zip archive with `meta.json` and each stored event in a file of its own (`event_000000_….json`), also when the sandbox is gone.',
    }),
    ApiOkResponse({
      description: 'The archive',
      content: { 'application/zip': { schema: { type: 'string', format: 'binary' }, example: 'PK…' } },
    }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.'),
    ),
  );
}
