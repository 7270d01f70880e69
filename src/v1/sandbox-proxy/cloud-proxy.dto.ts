import { ApiSchema } from '@nestjs/swagger';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { Choice, FreeObject, MAX_URL, Nested, Text } from '../../common/validation/field-decorators.js';
import { MODEL_ADDRESS } from '../../settings/flat/settings.dto.js';

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
export class CloudProxyDto {
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
