import { Nested } from '../../common/validation/nested.decorator.js';
import { MCP_CONFIG_MEMBERS, McpConfigDto } from './mcp-config.dto.js';

/** A body's `mcp_config`: arrives as `McpConfigDto`; null clears, absent keeps. */
export function McpConfigField(): PropertyDecorator {
  return Nested({
    type: McpConfigDto,
    nullable: true,
    onlyMembers: MCP_CONFIG_MEMBERS,
    description:
      'Tool servers; replaces the stored configuration. null clears it. Members other than the three lists are refused.',
    example: {
      sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: 'mcp-key-example' }],
      stdio_servers: [
        { name: 'files', command: 'npx', args: ['-y', 'files-server'], env: { API_TOKEN: 'token-example' } },
      ],
      shttp_servers: [],
    },
  });
}
