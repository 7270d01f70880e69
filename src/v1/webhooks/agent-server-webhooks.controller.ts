import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { SUCCESS, type SuccessDto } from '../../common/openapi/responses.js';
import type { BodyKind } from '../../common/requests/json-body.js';
import { JsonBodyBounds, type JsonBodyOptions } from '../../common/requests/json-body.guard.js';
import { ConversationPathDto } from '../events/events.dto.js';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import { ConversationWebhookOperation, EventsWebhookOperation } from './agent-server-webhooks.openapi.js';
import { AgentServerWebhooksService } from './agent-server-webhooks.service.js';

/** Agent servers send several events at once, with images and the output of commands in them. */
const EVENTS: Partial<JsonBodyOptions> = { bytes: 32 * 1024 * 1024, values: 1_000_000, skim: true };
/** A conversation comes with its settings, its skills and the statistics of each model call. */
const CONVERSATION: Partial<JsonBodyOptions> = { bytes: 4 * 1024 * 1024, anyText: true };

@ApiTags('Webhooks')
@SandboxAuthenticated()
@Controller('api/v1/webhooks')
export class AgentServerWebhooksController {
  constructor(private readonly webhooks: AgentServerWebhooksService) {}

  @Post('conversations')
  @HttpCode(200)
  @JsonBodyBounds(CONVERSATION)
  @ConversationWebhookOperation()
  async conversation(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() info: unknown,
  ): Promise<SuccessDto> {
    await this.webhooks.conversationChanged(sandbox, info);
    return SUCCESS;
  }

  @Post('events/:id')
  @HttpCode(200)
  @JsonBodyBounds(EVENTS)
  @EventsWebhookOperation()
  async events(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Param() { id }: ConversationPathDto,
    @Body() events: BodyKind | null | undefined,
  ): Promise<SuccessDto> {
    await this.webhooks.eventsArrived(sandbox, id, events);
    return SUCCESS;
  }
}
