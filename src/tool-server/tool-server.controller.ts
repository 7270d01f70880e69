import { Body, Controller, Injectable, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Response } from 'express';
import { presentedKey } from '../auth/api-key-format.js';
import { type AuthenticatedRequest, authenticatedUser, Public } from '../auth/auth.decorators.js';
import { AuthGuard } from '../auth/auth.guard.js';
import { DomainError, NO_KEY } from '../common/errors/domain-error.js';
import { noteCaller } from '@slipway/api/requests/request-context.js';
import { AppConfig } from '../config/app-config.js';
import { ServiceAddress } from '../config/service-address.js';
import {
  CONVERSATION_HEADER,
  OwnToolServer,
  TOOL_SERVER_PATH,
} from '../v1/app-conversations/agent-request/own-tool-server.js';
import { ToolServerService } from './tool-server.service.js';
import type { ToolCaller } from './conversation-progress.js';

const FOREIGN = 'Pages of this origin may not use the tool server: CORS_ORIGINS names those that may.';

interface ToolServerRequest extends AuthenticatedRequest {
  /** Set by the guard. */
  calling: Pick<ToolCaller, 'userId' | 'conversationId'>;
}

/** Accepts users, and agents by the keys of their conversations. */
@Injectable()
class ToolServerGuard implements CanActivate {
  constructor(
    private readonly users: AuthGuard,
    private readonly agents: OwnToolServer,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<ToolServerRequest>();
    const key = presentedKey(request.headers);
    const holder = key === null ? null : await this.agents.callerOf(key);
    if (holder !== null) {
      noteCaller(holder.userId, holder.sandboxId);
      request.calling = holder;
      return true;
    }
    await this.users.requireUser(context);
    const named = request.headers[CONVERSATION_HEADER.toLowerCase()];
    // Not signed: a caller that names a conversation may only do less than without one.
    const conversationId = typeof named === 'string' ? named : null;
    request.calling = { userId: authenticatedUser(context).id, conversationId };
    return true;
  }
}

/**
 * Model Context Protocol over streamable HTTP, without sessions: nothing is sent unasked, so there is no GET, and there is
 * nothing to end, so no DELETE. It describes itself (`tools/list`), better than OpenAPI could.
 */
@ApiExcludeController()
@Controller()
export class ToolServerController {
  constructor(
    private readonly calls: ToolServerService,
    private readonly address: ServiceAddress,
    private readonly config: AppConfig,
  ) {}

  @Public()
  @UseGuards(ToolServerGuard)
  @Post(TOOL_SERVER_PATH)
  async answer(
    @Body() body: unknown,
    @Req() { headers, calling }: ToolServerRequest,
    @Res() response: Response,
  ): Promise<void> {
    const { origin, host } = headers;
    const { corsOrigins } = this.config.http;
    // A page of another site may have given this machine a name of its own (DNS rebinding).
    if (origin !== undefined && !corsOrigins.includes(origin) && !this.address.isOwn(origin, host)) {
      throw new DomainError('forbidden', FOREIGN);
    }
    // Most installations never use it, and none is to start later for it.
    const { answerMessage } = await import('./message-answer.js');
    const { calls, address } = this;
    await answerMessage({ calling, body, headers, response, calls, address: address.publicUrl });
  }

  /** Clients whose key is refused try to sign in here (RFC 7591), and show their users this answer, not the refusal. */
  @Public()
  @Post('/register')
  register(@Res() response: Response): void {
    response.status(404).json({ error: 'invalid_request', error_description: NO_KEY });
  }
}
