import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import { ApiProblems } from '../../common/openapi/api-problems.decorator.js';
import { invalidInput } from '../../common/openapi/documented-error.js';
import { SuccessDto } from '../../common/openapi/success.dto.js';
import { UNKNOWN_CONVERSATION } from './conversation-problems.js';
import { AppConversationPageDto } from './dto/app-conversation-page.dto.js';
import { AppConversationDto } from './dto/app-conversation.dto.js';

const BAD_LIMIT = invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.');
const BAD_TIME = invalidInput(
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
    ApiProblems(BAD_LIMIT),
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
    ApiProblems(BAD_TIME),
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
    ApiProblems(BAD_LIMIT),
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
