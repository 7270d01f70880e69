import { ApiSchema } from '@nestjs/swagger';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { FreeObject, Nested } from '../../common/validation/nested-fields.js';
import { Choice, MAX_URL, Text } from '../../common/validation/text-fields.js';
import { MODEL_ADDRESS } from '../../settings/flat/settings.dto.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const MAX_PATH_LENGTH = 8_192;
const MAX_BODY_LENGTH = 1_048_576;

class CloudProxyHeadersDto {
  @Text({
    required: true,
    secret: true,
    description: 'The `session_api_key` of the sandbox.',
    example: 'session-key-example',
  })
  'X-Session-API-Key': string;
}

/** A request to an agent server. Members not listed here are ignored. */
@ApiSchema({ name: 'CloudProxyRequest' })
export class CloudProxyDto {
  @Text({
    required: true,
    description: 'Where the agent server of the sandbox is, as `conversation_url` says.',
    example: 'http://127.0.0.1:13042',
    form: { pattern: `^${MODEL_ADDRESS}$` },
    maxLength: MAX_URL,
    rule: (url) => addressProblem(url, ['http', 'https']),
  })
  host: string;

  @Choice({ values: METHODS, required: true, description: 'The method of the request.', example: 'GET' })
  method: (typeof METHODS)[number];

  @Text({
    required: true,
    description: 'Path and query of the request.',
    example: '/api/git/commits?path=%2Fworkspace%2Fproject',
    maxLength: MAX_PATH_LENGTH,
    pattern: { regex: /^\/[!-~]*$/, expected: 'Expected a path that begins with a slash, percent-encoded.' },
  })
  path: string;

  @Nested({ type: CloudProxyHeadersDto, required: true, description: 'Other headers are not sent.' })
  headers: CloudProxyHeadersDto;

  @FreeObject({
    nullable: true,
    description: 'Sent as JSON; null for nothing.',
    example: null,
    maxLength: MAX_BODY_LENGTH,
  })
  body?: Record<string, unknown> | null;
}
