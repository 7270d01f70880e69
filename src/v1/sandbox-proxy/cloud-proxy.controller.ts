import { Body, Controller, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, documented, thrown } from '../../common/openapi/api-route.js';
import { CloudProxyDto } from './cloud-proxy.dto.js';
import { CloudProxyService, noSuchSandbox } from './cloud-proxy.service.js';

const DESCRIPTION =
  'For web applications that reach agent servers only through their own origin, as agent-canvas does; others use ' +
  'the address of the agent server itself. The response, with its status, is that of the agent server.';
const NO_SUCH_SANDBOX = thrown(
  noSuchSandbox(),
  'There is no such sandbox, it does not run, or it belongs to somebody else',
);
const NO_ANSWER = documented(
  502,
  'The agent server of the sandbox did not answer.',
  'The agent server did not answer',
);

@ApiTags('Sandboxes')
@Controller('api/cloud-proxy')
export class CloudProxyController {
  constructor(private readonly proxy: CloudProxyService) {}

  @Post()
  @ApiRoute('forward_to_agent_server', 'Send a request to the agent server of a sandbox of yours', {
    description: DESCRIPTION,
    answer: {
      description: 'What the agent server responded',
      content: {
        'application/json': { schema: {}, example: { commits: [], has_more: false } },
        'application/octet-stream': { schema: { type: 'string', format: 'binary' }, example: 'PNG…' },
      },
    },
    problems: [NO_SUCH_SANDBOX, NO_ANSWER],
  })
  async forward(
    @UserId() userId: string,
    @Body() body: CloudProxyDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.proxy.forward(userId, body, { request, response });
  }
}
