import { applyDecorators } from '@nestjs/common';
import { ApiExtraModels, ApiHeader, ApiOkResponse, ApiOperation, getSchemaPath } from '@nestjs/swagger';
import type { MessageEvent } from '@slipway/agent-protocol/events.js';
import { ApiProblems, type DocumentedProblem, invalidInput } from '../../common/openapi/problems.js';
import { ConversationEventDto, EventPageDto, LAST_EVENT_ID_FORM } from './events.dto.js';

/** The event that the documentation shows. */
export const EVENT_EXAMPLE: MessageEvent = {
  kind: 'MessageEvent',
  id: 'b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f',
  timestamp: '2026-11-21T09:30:00.123456',
  source: 'user',
  llm_message: { role: 'user', content: [{ type: 'text', text: 'Fix the failing test.' }] },
  activated_skills: [],
  extended_content: [],
};

/** 404 of every route with a conversation's id. */
export const UNKNOWN_CONVERSATION: DocumentedProblem = {
  status: 404,
  detail: 'There is no conversation with this id.',
  description: 'Unknown, or not yours',
};
const INVALID_TIME = invalidInput(
  ['query', 'timestamp__gte'],
  'datetime_parsing',
  'Expected a time such as 2030-01-31T12:00:00Z.',
);
const STREAM_EXAMPLE = `retry: 1000\nid: 0\n\nid: 1\nevent: ${EVENT_EXAMPLE.kind}\ndata: ${JSON.stringify(EVENT_EXAMPLE)}\n\n: heartbeat\n\n`;

/** Documents `GET …/events/search`. */
export function SearchEventsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_events',
      summary: 'Events of a conversation',
      description:
        "In the order of the agent server's log, also when the sandbox is gone. Every event is kept as it came; the longest texts of an event above 4 MiB are cut.",
    }),
    ApiOkResponse({
      type: EventPageDto,
      description: 'A page of events',
      example: { items: [EVENT_EXAMPLE], next_page_id: null },
    }),
    ApiProblems(UNKNOWN_CONVERSATION, INVALID_TIME),
  );
}

/** Documents `GET …/events/count`. */
export function CountEventsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ operationId: 'count_events', summary: 'How many events a conversation has' }),
    ApiOkResponse({
      description: 'How many there are',
      content: { 'application/json': { schema: { type: 'integer' }, example: 17 } },
    }),
    ApiProblems(UNKNOWN_CONVERSATION, INVALID_TIME),
  );
}

/** Documents `GET /api/v1/events/count`. */
export function CountConversationEventsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'count_conversation_events',
      summary: 'How many events a conversation has, for older clients',
      description: 'As `GET /api/v1/conversation/{id}/events/count`; 0 for an unknown conversation.',
    }),
    ApiOkResponse({
      description: 'How many there are',
      content: { 'application/json': { schema: { type: 'integer' }, example: 17 } },
    }),
    ApiProblems(invalidInput(['query', 'conversation_id__eq'], 'missing', 'This member is required.')),
  );
}

/** Documents `GET …/events`. */
export function BatchEventsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ operationId: 'batch_get_events', summary: 'Events by id' }),
    ApiExtraModels(ConversationEventDto),
    ApiOkResponse({
      description: 'In the order asked for; null for unknown ids',
      content: {
        'application/json': {
          schema: {
            type: 'array',
            items: { anyOf: [{ $ref: getSchemaPath(ConversationEventDto) }, { type: 'null' }] },
          },
          example: [EVENT_EXAMPLE, null],
        },
      },
    }),
    ApiProblems(UNKNOWN_CONVERSATION, invalidInput(['query', 'id'], 'missing', 'This member is required.')),
  );
}

/** Documents `GET …/events/stream`. */
export function StreamEventsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'stream_events',
      summary: 'Events of a conversation as they happen',
      description:
        'Server-sent events: `id` counts the events of the conversation (1, 2, 3 …), `event` is the kind, `data` the event as in the search. It begins with the first event, or after the one that Last-Event-ID names, without a gap or a repeat. It begins with `retry` and the id after which it begins, for clients that lose the connection before the first event. Where the agent has given up, a `ConversationStateUpdateEvent` without an id follows, which is no event of the log: its `value` has `execution_status` and `error`. A comment every 15 seconds keeps it open. It ends when the key is revoked, the conversation is deleted or the service stops; connect again with the last id that arrived. A user may have 32 open streams.',
    }),
    ApiHeader({
      name: 'Last-Event-ID',
      required: false,
      description: 'The last `id` that arrived; browsers send it by themselves when they connect again.',
      schema: { type: 'string', example: '17', ...LAST_EVENT_ID_FORM },
    }),
    ApiOkResponse({
      description: 'Events, without an end',
      content: { 'text/event-stream': { schema: { type: 'string' }, example: STREAM_EXAMPLE } },
    }),
    ApiProblems(
      UNKNOWN_CONVERSATION,
      invalidInput(
        ['header', 'last-event-id'],
        'value_error',
        'Expected the id of an event of this stream, which is a number.',
      ),
    ),
  );
}
