import { Body, Controller, Post, Req, Res } from '@nestjs/common';
import { ApiTags, ApiSchema } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { Choice, FreeObject, MAX_URL, Nested, Text } from '@slipway/api/validation/field-decorators.js';
import { MODEL_ADDRESS } from '../../settings/flat/settings.dto.js';
import { AgentServerProxy, noSuchSandbox } from './agent-server.proxy.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const MAX_PATH_LENGTH = 8_192;
const MAX_BODY_LENGTH = 1_048_576;

class CloudProxyHeadersDto {
  @Text('The `session_api_key` of the sandbox.', {
    required: true,
    secret: true,
    example: 'session-key-example',
  })
  'X-Session-API-Key': string;
}

/** A request to an agent server. Members not listed here are ignored. */
@ApiSchema({ name: 'CloudProxyRequest' })
class CloudProxyDto {
  @Text('Where the agent server of the sandbox is, as `conversation_url` says.', {
    required: true,
    example: 'http://127.0.0.1:13042',
    form: { pattern: `^${MODEL_ADDRESS}$` },
    maxLength: MAX_URL,
    rule: (url) => addressProblem(url, ['http', 'https']),
  })
  host: string;

  @Choice('The method of the request.', { values: METHODS, required: true, example: 'GET' })
  method: (typeof METHODS)[number];

  @Text('Path and query of the request.', {
    required: true,
    example: '/api/git/commits?path=%2Fworkspace%2Fproject',
    maxLength: MAX_PATH_LENGTH,
    pattern: { regex: /^\/[!-~]*$/, expected: 'Expected a path that begins with a slash, percent-encoded.' },
  })
  path: string;

  @Nested('Other headers are not sent.', { type: CloudProxyHeadersDto, required: true })
  headers: CloudProxyHeadersDto;

  @FreeObject('Sent as JSON; null for nothing.', {
    nullable: true,
    example: null,
    maxLength: MAX_BODY_LENGTH,
  })
  body?: Record<string, unknown> | null;
}

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
  constructor(private readonly proxy: AgentServerProxy) {}

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
    await this.proxy.forwardInner(userId, body, { request, response });
  }
}
