import { ApiSchema } from '@nestjs/swagger';
import { addressProblem } from '../../common/http/address-problem.js';
import { Text } from '../../common/validation/text.decorator.js';

/** A tool server reached over HTTP: server-sent events or streamable HTTP. Members it does not list are ignored. */
@ApiSchema({ name: 'MCPRemoteServerConfig' })
export class RemoteMcpServerDto {
  @Text({
    required: true,
    trim: true,
    description:
      'Absolute http, https, ws or wss address; unique in its list. It is stored and shown in clear: keys belong into `api_key`.',
    example: 'https://mcp.example.com/sse',
    rule: (url) => addressProblem(url, ['http', 'https', 'ws', 'wss']),
  })
  url: string;

  @Text({
    nullable: true,
    secret: true,
    description:
      'Key sent to the server; null, absent or blank for none. It is shown as `**********`, and that mask sent back for the same address keeps the stored key.',
    example: 'mcp-key-example',
  })
  api_key?: string | null;
}
