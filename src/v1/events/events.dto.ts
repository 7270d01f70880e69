import { ApiProperty, ApiSchema, IntersectionType } from '@nestjs/swagger';
import { eventSchema } from '@slipway/agent-protocol/event-schemas.js';
import type { AgentEvent, MessageEvent } from '@slipway/agent-protocol/events.js';
import { z } from 'zod';
import { toInstant } from '@slipway/common/clock.js';
import { thrown } from '@slipway/api/openapi/api-route.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { NextPageId, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { field, must } from '@slipway/api/validation/field.js';
import { Choice, RepeatedText, Text } from '@slipway/api/validation/field-decorators.js';
import { type EventSearch, unknownConversation } from './events.service.js';
import type { EventFilter } from './store/event.queries.js';
import type { StreamStart } from './stream/event-streams.service.js';

const EVENT_SORT_ORDERS = ['TIMESTAMP', 'TIMESTAMP_DESC'] as const;
const STREAM_STARTS = ['start', 'now'] as const;

export const EVENT_EXAMPLE: MessageEvent = {
  kind: 'MessageEvent',
  id: 'b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f',
  timestamp: '2026-11-21T09:30:00.123456',
  source: 'user',
  llm_message: { role: 'user', content: [{ type: 'text', text: 'Fix the failing test.' }] },
  activated_skills: [],
  extended_content: [],
};

export const UNKNOWN_CONVERSATION = thrown(unknownConversation(), 'Unknown, or not yours');

function ConversationId(): PropertyDecorator {
  const example = '5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f';
  const description = 'Id of the conversation: 32 hexadecimal digits, with or without dashes.';
  return Text(description, { required: true, example });
}

export class ConversationIdDto {
  @ConversationId() id: string;
}

export class CountEventsQueryDto {
  @Text('Only events of this kind.', { example: 'MessageEvent' }) kind__eq?: string;
  @EventTime('Only events from this moment on', '2026-11-21T09:30:00Z') timestamp__gte?: string;
  @EventTime('Only events before this moment', '2026-11-22T00:00:00Z') timestamp__lt?: string;
}

export class CountConversationEventsQueryDto extends CountEventsQueryDto {
  @ConversationId() conversation_id__eq: string;
}

export class EventIdsQueryDto {
  @RepeatedText('Ids of events, each as a parameter of its own.', {
    required: true,
    most: 100,
    example: ['b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f'],
  })
  id: string[];
}

export class SearchEventsQueryDto extends IntersectionType(
  CountEventsQueryDto,
  PageQuery('Events on a page; one of 4 MiB ends earlier.'),
) {
  @Choice('Oldest or newest first.', { values: EVENT_SORT_ORDERS, default: 'TIMESTAMP' })
  sort_order?: (typeof EVENT_SORT_ORDERS)[number];
}

export const LAST_EVENT_ID_FORM = { pattern: String.raw`^[0-9]{0,10}$` };

export class StreamQueryDto {
  @Choice('Where to begin when no last event is named: with the first event, or with the next one.', {
    values: STREAM_STARTS,
    default: 'start',
  })
  from?: (typeof STREAM_STARTS)[number];

  @Text('As the header Last-Event-ID, for clients that cannot set it; the header decides.', {
    example: '17',
    form: LAST_EVENT_ID_FORM,
  })
  last_event_id?: string;
}

const { $schema: _draft, ...EVENT } = z.toJSONSchema(eventSchema, { io: 'input' });

@ApiSchema({ name: 'Event' })
@SchemaRules({
  ...EVENT,
  description:
    'An event of a conversation as its agent server wrote it, with further members if it had some; agent servers of later versions may write further kinds. Of an event above 4 MiB the longest texts are cut, and if that is not enough, nested members are left out.',
  discriminator: { propertyName: 'kind' },
  example: EVENT_EXAMPLE,
})
export class ConversationEventDto {}

export class EventPageDto {
  @ApiProperty({ type: [ConversationEventDto] }) items: AgentEvent[];
  @NextPageId() next_page_id: string | null;
}

export function toEventFilter(query: CountEventsQueryDto): EventFilter {
  return { kind: query.kind__eq, from: query.timestamp__gte, before: query.timestamp__lt };
}

export function toEventSearch(query: SearchEventsQueryDto): EventSearch {
  return {
    ...toEventFilter(query),
    descending: query.sort_order === 'TIMESTAMP_DESC',
    pageId: query.page_id,
    limit: query.limit,
  };
}

export function toStreamStart(query: StreamQueryDto, lastEventId: string | undefined): StreamStart {
  return { header: lastEventId, query: query.last_event_id, fromNow: query.from === 'now' };
}

function isInstant(value: unknown): boolean {
  return typeof value === 'string' && toInstant(value) === value;
}

/** A moment as events write it: a time without zone is UTC. Arrives as text with all its microseconds. */
function EventTime(description: string, example: string): PropertyDecorator {
  return field(
    `${description}; without a time zone it is UTC.`,
    { example },
    {
      schema: { type: String, format: 'date-time' },
      coerce: (value) => (typeof value === 'string' ? (toInstant(value) ?? value) : value),
      rules: {
        isInstant: must(isInstant, 'datetime_parsing', 'Expected a time such as 2030-01-31T12:00:00Z.'),
      },
    },
  );
}
