import { Body, Controller, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { type AuthUser, CurrentUser, Public } from '../auth/auth.decorators.js';
import { DomainError } from '../common/errors/domain-error.js';
import { NO_KEY } from '../common/errors/problem.js';
import { AppConfig } from '../config/app-config.js';
import { ServiceAddress } from '../config/service-address.js';
import { TOOL_SERVER_PATH } from '../v1/app-conversations/agent-request/own-tool-server.js';
import { ToolServerService } from './tool-server.service.js';

const FOREIGN = 'Pages of this origin may not use the tool server: CORS_ORIGINS names those that may.';

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

  @Post(TOOL_SERVER_PATH)
  async answer(
    @CurrentUser() { id: userId }: AuthUser,
    @Body() body: unknown,
    @Req() { headers }: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { origin, host } = headers;
    const { corsOrigins } = this.config.http;
    // A page of another site may have given this machine a name of its own (DNS rebinding).
    if (origin !== undefined && !corsOrigins.includes(origin) && !this.address.isOwn(origin, host)) {
      throw new DomainError('forbidden', 'forbidden', FOREIGN);
    }
    // Most installations never use it, and none is to start later for it.
    const { answerMessage } = await import('./message-answer.js');
    const { calls, address } = this;
    await answerMessage({ userId, body, headers, response, calls, address: address.publicUrl });
  }

  /** Clients whose key is refused try to sign in here (RFC 7591), and show their users this answer, not the refusal. */
  @Public()
  @Post('/register')
  register(@Res() response: Response): void {
    response.status(404).json({ error: 'invalid_request', error_description: NO_KEY });
  }
}
