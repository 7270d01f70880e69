import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../../common/openapi/next-page-id.decorator.js';
import type { AgentEvent } from '../../../agent-protocol/events.js';
import type { Page } from '../../../common/pagination/page.js';
import { ConversationEventDto } from './conversation-event.dto.js';

/** A page of events. */
@ApiSchema({ name: 'EventPage' })
export class EventPageDto {
  @ApiProperty({ type: [ConversationEventDto] })
  items: AgentEvent[];

  @NextPageId()
  next_page_id: string | null;
}

export function toEventPageDto(page: Page<AgentEvent>): EventPageDto {
  return { items: page.items, next_page_id: page.nextPageId };
}
