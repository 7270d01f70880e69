import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { StoredMcpConfig, StoredRemoteMcpServer, StoredStdioMcpServer } from './mcp-config.types.js';

@ApiSchema({ name: 'StoredMCPRemoteServerConfig' })
class StoredRemoteMcpServerDto implements StoredRemoteMcpServer {
  @ApiProperty({ example: 'https://mcp.example.com/sse' })
  url: string;

  @ApiProperty({ type: String, nullable: true, description: 'null, or the mask.', example: '**********' })
  api_key: string | null;
}

@ApiSchema({ name: 'StoredMCPStdioServerConfig' })
class StoredStdioMcpServerDto implements StoredStdioMcpServer {
  @ApiProperty({ example: 'files' })
  name: string;

  @ApiProperty({ example: 'npx' })
  command: string;

  @ApiProperty({ type: [String], example: ['-y', 'files-server'] })
  args: string[];

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Every value is the mask.',
    example: { API_TOKEN: '**********' },
  })
  env: Record<string, string>;
}

/** An MCP configuration as responses show it: secrets are masked, and a mask sent back keeps the secret. */
@ApiSchema({ name: 'StoredMCPConfig' })
export class StoredMcpConfigDto implements StoredMcpConfig {
  @ApiProperty({ type: [StoredRemoteMcpServerDto] })
  sse_servers: StoredRemoteMcpServerDto[];

  @ApiProperty({ type: [StoredStdioMcpServerDto] })
  stdio_servers: StoredStdioMcpServerDto[];

  @ApiProperty({ type: [StoredRemoteMcpServerDto] })
  shttp_servers: StoredRemoteMcpServerDto[];
}
