import { Controller, Get, Header, Headers, Param, Query, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Response } from 'express';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import {
  ConversationPathDto,
  CountConversationEventsQueryDto,
  CountEventsQueryDto,
  EventIdsQueryDto,
  type EventPageDto,
  toEventPageDto,
  SearchEventsQueryDto,
  StreamQueryDto,
  toEventFilter,
  toEventSearch,
  toStreamStart,
} from './events.dto.js';
import {
  BatchEventsOperation,
  CountConversationEventsOperation,
  CountEventsOperation,
  SearchEventsOperation,
  StreamEventsOperation,
} from './events.openapi.js';
import { EventsService } from './events.service.js';
import { EventStreamsService } from './stream/event-streams.service.js';

@ApiTags('Events')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/conversation/:id/events')
export class EventsController {
  constructor(
    private readonly events: EventsService,
    private readonly streams: EventStreamsService,
  ) {}

  @Get('search')
  @SearchEventsOperation()
  async search(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationPathDto,
    @Query() query: SearchEventsQueryDto,
  ): Promise<EventPageDto> {
    return toEventPageDto(await this.events.search(user.id, id, toEventSearch(query)));
  }

  @Get('count')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @CountEventsOperation()
  async count(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationPathDto,
    @Query() query: CountEventsQueryDto,
  ): Promise<number> {
    return this.events.count(user.id, id, toEventFilter(query));
  }

  @Get('stream')
  @StreamEventsOperation()
  async stream(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationPathDto,
    @Query() query: StreamQueryDto,
    @Headers('last-event-id') lastEventId: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    await this.streams.serve(user, id, toStreamStart(query, lastEventId), response);
  }

  @Get()
  @BatchEventsOperation()
  async batch(
    @CurrentUser() user: AuthUser,
    @Param() { id }: ConversationPathDto,
    @Query() query: EventIdsQueryDto,
  ): Promise<(AgentEvent | null)[]> {
    return this.events.batch(user.id, id, query.id);
  }
}

/** The route of the web client before its events had the conversation in their path. */
@ApiTags('Events')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/events')
export class EventCountController {
  constructor(private readonly events: EventsService) {}

  @Get('count')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @CountConversationEventsOperation()
  async count(
    @CurrentUser() user: AuthUser,
    @Query() query: CountConversationEventsQueryDto,
  ): Promise<number> {
    return this.events.countOrNone(user.id, query.conversation_id__eq, toEventFilter(query));
  }
}
