import { applyDecorators, Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { ApiProblems, invalidInput } from '../../common/openapi/problems.js';
import { ApiBodyExamples } from '../../common/openapi/responses.js';
import { CloudProxyDto } from './cloud-proxy.dto.js';
import { CloudProxyService } from './cloud-proxy.service.js';

/** Documents `POST /api/cloud-proxy`. */
function CloudProxyOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'forward_to_agent_server',
      summary: 'Send a request to the agent server of a sandbox of yours',
      description:
        'For web applications that reach agent servers only through their own origin, as agent-canvas does; others use ' +
        'the address of the agent server itself. The response, with its status, is that of the agent server.',
    }),
    ApiBodyExamples(CloudProxyDto, {
      commits: {
        summary: 'The commits of a repository',
        value: {
          host: 'http://127.0.0.1:13042',
          method: 'GET',
          path: '/api/git/commits?path=%2Fworkspace%2Fproject',
          headers: { 'X-Session-API-Key': 'session-key-example' },
          body: null,
        },
      },
    }),
    ApiOkResponse({
      description: 'What the agent server responded',
      content: {
        'application/json': { schema: {}, example: { commits: [], has_more: false } },
        'application/octet-stream': { schema: { type: 'string', format: 'binary' }, example: 'PNG…' },
      },
    }),
    ApiProblems(
      {
        status: 404,
        code: 'sandbox_not_running',
        detail:
          'No running sandbox of yours has this address and this key. If it is paused, resume it: POST /api/v1/sandboxes/{id}/resume; its key is another one afterwards.',
        description: 'There is no such sandbox, it does not run, or it belongs to somebody else',
      },
      413,
      415,
      {
        status: 502,
        code: 'upstream_error',
        detail: 'The agent server of the sandbox did not answer.',
        description: 'The agent server did not answer',
      },
      invalidInput(['body', 'host'], 'missing', 'This member is required.'),
    ),
  );
}

/** Lets the web application that the service serves reach agent servers through its own origin. */
@ApiTags('Sandboxes')
@ApiSecurity('APIKeyHeader')
@Controller('api/cloud-proxy')
export class CloudProxyController {
  constructor(private readonly proxy: CloudProxyService) {}

  @Post()
  @HttpCode(200)
  @CloudProxyOperation()
  async forward(
    @CurrentUser() user: AuthUser,
    @Body() body: CloudProxyDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.proxy.forward(user.id, body, { request, response });
  }
}
