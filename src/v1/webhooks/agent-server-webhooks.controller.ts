import { Body, Controller, HttpCode, Param, Post, UseInterceptors } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ConversationPathDto } from '../events/dto/conversation-path.dto.js';
import { CurrentSandbox } from '../sandboxes/current-sandbox.decorator.js';
import { SandboxAuthenticated } from '../sandboxes/sandbox-authenticated.decorator.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';
import { ConversationWebhookOperation, EventsWebhookOperation } from './agent-server-webhooks.operations.js';
import { AgentServerWebhooksService } from './agent-server-webhooks.service.js';
import { WebhookBodyInterceptor } from './webhook-body.interceptor.js';
import type { SuccessDto } from '../../common/openapi/success.dto.js';

@ApiTags('Webhooks')
@SandboxAuthenticated()
@UseInterceptors(WebhookBodyInterceptor)
@Controller('api/v1/webhooks')
export class AgentServerWebhooksController {
  constructor(private readonly webhooks: AgentServerWebhooksService) {}

  @Post('conversations')
  @HttpCode(200)
  @ConversationWebhookOperation()
  async conversation(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() info: unknown,
  ): Promise<SuccessDto> {
    await this.webhooks.conversationChanged(sandbox, info);
    return { success: true };
  }

  @Post('events/:id')
  @HttpCode(200)
  @EventsWebhookOperation()
  async events(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Param() { id }: ConversationPathDto,
    @Body() events: unknown,
  ): Promise<SuccessDto> {
    await this.webhooks.eventsArrived(sandbox, id, events);
    return { success: true };
  }
}
