import type { CountEventsQueryDto } from './dto/count-events-query.dto.js';
import type { SearchEventsQueryDto } from './dto/search-events-query.dto.js';
import type { StreamQueryDto } from './dto/stream-query.dto.js';
import type { EventFilter } from './events.reader.js';
import type { EventSearch } from './events.service.js';
import type { StreamStart } from './stream/stream-position.js';

const DEFAULT_LIMIT = 100;

export function toEventFilter(query: CountEventsQueryDto): EventFilter {
  return { kind: query.kind__eq, from: query.timestamp__gte, before: query.timestamp__lt };
}

export function toEventSearch(query: SearchEventsQueryDto): EventSearch {
  return {
    ...toEventFilter(query),
    descending: query.sort_order === 'TIMESTAMP_DESC',
    pageId: query.page_id,
    limit: query.limit ?? DEFAULT_LIMIT,
  };
}

export function toStreamStart(query: StreamQueryDto, lastEventId: string | undefined): StreamStart {
  return { header: lastEventId, query: query.last_event_id, fromNow: query.from === 'now' };
}
