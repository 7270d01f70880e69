import {
  Body,
  type CallHandler,
  Controller,
  type ExecutionContext,
  HttpCode,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { from, type Observable, switchMap } from 'rxjs';
import { SUCCESS, type SuccessDto } from '../../common/openapi/responses.js';
import { jsonBodyMiddleware } from '../../common/requests/json-body.middleware.js';
import { ConversationPathDto } from '../events/events.dto.js';
import { CurrentSandbox, SandboxAuthenticated } from '../sandboxes/sandbox-key.guard.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-key.queries.js';
import { ConversationWebhookOperation, EventsWebhookOperation } from './agent-server-webhooks.openapi.js';
import { AgentServerWebhooksService } from './agent-server-webhooks.service.js';

/** Agent servers send several events at once, with images and the output of commands in them. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const BODY_TIMEOUT_MS = 20_000;

/** Reads the body of a webhook after the guards, so that only a caller with a key can make the service buffer it. */
@Injectable()
class WebhookBodyInterceptor implements NestInterceptor {
  private readonly read = jsonBodyMiddleware(MAX_BODY_BYTES, BODY_TIMEOUT_MS, { anyText: true });

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    void this.read(request, response, (error?: unknown) => {
      if (error === undefined) {
        resolve();
      } else {
        reject(error);
      }
    });
    return from(promise).pipe(switchMap(() => next.handle()));
  }
}

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
    return SUCCESS;
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
    return SUCCESS;
  }
}
