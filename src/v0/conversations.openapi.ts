import { applyDecorators } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '@nestjs/swagger';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../common/openapi/problems.js';
import { ConversationInfoDto, ConversationInfoPageDto, ConversationRuntimeDto } from './conversations.dto.js';

const UNKNOWN: DocumentedProblem = {
  status: 404,
  detail: 'There is no conversation with this id.',
  description: 'Unknown conversation, or not yours',
};
const BAD_ID = invalidInput(['path', 'id'], 'string_unicode', 'Expected text without NUL characters.');

/** Documents `GET /api/conversations`. */
export function SearchConversationInfosOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_conversations_api_conversations_get',
      summary: 'Conversations, as the older web application lists them',
      description: 'The newest first; the same as GET /api/v1/app-conversations/search shows.',
    }),
    ApiOkResponse({ type: ConversationInfoPageDto, description: 'A page of conversations' }),
    ApiProblems(invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.')),
  );
}

/** Documents `GET /api/conversations/{id}`. */
export function GetConversationInfoOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_conversation_api_conversations_conversation_id_get',
      summary: 'One conversation, as the older web application shows it',
    }),
    ApiOkResponse({ type: ConversationInfoDto, description: 'The conversation' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `GET /api/conversations/{id}/config`. */
export function GetConversationRuntimeOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'get_remote_runtime_config_api_conversations_conversation_id_config_get',
      summary: 'Where a conversation runs',
    }),
    ApiOkResponse({ type: ConversationRuntimeDto, description: 'Its sandbox' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `PATCH /api/conversations/{id}`. */
export function RenameConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'update_conversation_api_conversations_conversation_id_patch',
      summary: 'Rename a conversation',
      description: 'Takes what PATCH /api/v1/app-conversations/{id} takes.',
    }),
    ApiOkResponse({ schema: { type: 'boolean' }, description: 'Renamed', example: true }),
    ApiProblems(
      UNKNOWN,
      413,
      415,
      invalidInput(['body', 'title'], 'value_error', 'Expected a title that is not blank.'),
    ),
  );
}

/** Documents `DELETE /api/conversations/{id}`. */
export function RemoveConversationOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_conversation_api_conversations_conversation_id_delete',
      summary: 'Remove a conversation',
    }),
    ApiOkResponse({ schema: { type: 'boolean' }, description: 'Removed', example: true }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}
