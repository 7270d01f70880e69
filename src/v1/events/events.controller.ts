import { Controller, Get, Headers, Param, Query, Res } from '@nestjs/common';
import { ApiHeader, ApiTags, getSchemaPath } from '@nestjs/swagger';
import type { Response } from 'express';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import {
  ConversationEventDto,
  ConversationIdDto,
  CountConversationEventsQueryDto,
  CountEventsQueryDto,
  EVENT_EXAMPLE,
  EventIdsQueryDto,
  EventPageDto,
  LAST_EVENT_ID_FORM,
  SearchEventsQueryDto,
  StreamQueryDto,
  toEventFilter,
  toEventSearch,
  toStreamStart,
  UNKNOWN_CONVERSATION,
} from './events.dto.js';
import { ConversationOwner, NeedsAccess } from './conversation-access.guard.js';
import { EventsService } from './events.service.js';
import { EventStreamsService } from './stream/event-streams.service.js';

const STREAM =
  'Server-sent events: `id` counts the events of the conversation (1, 2, 3 …), `event` is the kind, `data` the event as ' +
  'in the search. It begins with the first event, or after the one that Last-Event-ID names, without a gap or a repeat. ' +
  'It begins with `retry` and the id after which it begins, for clients that lose the connection before the first ' +
  'event. Where the agent has given up, a `ConversationStateUpdateEvent` without an id follows, which is no event of ' +
  'the log: its `value` has `execution_status` and `error`. A comment every 15 seconds keeps it open. It ends when the ' +
  'key is revoked, the conversation is deleted or no longer shared with you, or the service stops; connect again with the last id that arrived. A ' +
  'user may have 32 open streams.';
const STREAM_EXAMPLE = `retry: 1000\nid: 0\n\nid: 1\nevent: ${EVENT_EXAMPLE.kind}\ndata: ${JSON.stringify(EVENT_EXAMPLE)}\n\n: heartbeat\n\n`;
const COUNT = { schema: { type: 'integer' as const }, description: 'How many there are', example: 17 };

@ApiTags('Events')
@Controller('api/v1/conversation/:id/events')
export class EventsController {
  constructor(
    private readonly events: EventsService,
    private readonly streams: EventStreamsService,
  ) {}

  @Get('search')
  @NeedsAccess('read')
  @ApiRoute('search_events', 'Events of a conversation', {
    description:
      "In the order of the agent server's log, also when the sandbox is gone. Every event is kept as it came; the longest texts of an event above 4 MiB are cut.",
    answer: { type: EventPageDto, description: 'A page of events' },
    problems: [UNKNOWN_CONVERSATION],
    invalid: 'timestamp__gte',
  })
  async search(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: SearchEventsQueryDto,
  ): Promise<EventPageDto> {
    const { items, nextPageId } = await this.events.search(userId, id, toEventSearch(query));
    return { items, next_page_id: nextPageId };
  }

  @Get('count')
  @NeedsAccess('read')
  @ApiRoute('count_events', 'How many events a conversation has', {
    description: 'Of those that match the filters; all of them without any.',
    answer: COUNT,
    problems: [UNKNOWN_CONVERSATION],
  })
  async count(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: CountEventsQueryDto,
  ): Promise<number> {
    return this.events.count(userId, id, toEventFilter(query));
  }

  @Get('stream')
  @NeedsAccess('read')
  @ApiHeader({
    name: 'Last-Event-ID',
    required: false,
    description: 'The last `id` that arrived; browsers send it by themselves when they connect again.',
    schema: { type: 'string', example: '17', ...LAST_EVENT_ID_FORM },
  })
  @ApiRoute('stream_events', 'Events of a conversation as they happen', {
    description: STREAM,
    answer: {
      description: 'Events, without an end',
      content: { 'text/event-stream': { schema: { type: 'string' }, example: STREAM_EXAMPLE } },
    },
    problems: [UNKNOWN_CONVERSATION],
    invalid: badInput(
      'header.last-event-id',
      'Expected the id of an event of this stream, which is a number.',
    ),
  })
  async stream(
    @CurrentUser() user: AuthUser,
    @ConversationOwner() ownerId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: StreamQueryDto,
    @Headers('last-event-id') lastEventId: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    await this.streams.serve(user, { ownerId, id }, toStreamStart(query, lastEventId), response);
  }

  @Get()
  @NeedsAccess('read')
  @ApiRoute('batch_get_events', 'Events by id', {
    description: 'Looks them up in one conversation.',
    answer: {
      schema: {
        type: 'array',
        items: { anyOf: [{ $ref: getSchemaPath(ConversationEventDto) }, { type: 'null' }] },
      },
      description: 'In the order asked for; null for unknown ids',
    },
    problems: [UNKNOWN_CONVERSATION],
  })
  async batch(
    @ConversationOwner() userId: string,
    @Param() { id }: ConversationIdDto,
    @Query() query: EventIdsQueryDto,
  ): Promise<(AgentEvent | null)[]> {
    return this.events.batch(userId, id, query.id);
  }
}

/** The route of the web client before its events had the conversation in their path. */
@ApiTags('Events')
@Controller('api/v1/events')
export class EventCountController {
  constructor(private readonly events: EventsService) {}

  @Get('count')
  @ApiRoute('count_conversation_events', 'How many events a conversation has, for older clients', {
    description: 'As `GET /api/v1/conversation/{id}/events/count`; 0 for an unknown conversation.',
    answer: COUNT,
  })
  async count(
    @CurrentUser() user: AuthUser,
    @Query() query: CountConversationEventsQueryDto,
  ): Promise<number> {
    return this.events.countOrNone(user, query.conversation_id__eq, toEventFilter(query));
  }
}
