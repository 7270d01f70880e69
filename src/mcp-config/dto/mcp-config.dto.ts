import { ApiSchema } from '@nestjs/swagger';
import type { FieldProblem } from '../../common/validation/field-rule.js';
import { NestedList } from '../../common/validation/nested-list.decorator.js';
import { RemoteMcpServerDto } from './remote-mcp-server.dto.js';
import { StdioMcpServerDto } from './stdio-mcp-server.dto.js';

/** Configuration of tool servers as a client sends it: the whole of it, a list left out is empty. */
@ApiSchema({ name: 'MCPConfig' })
export class McpConfigDto {
  @NestedList({
    type: RemoteMcpServerDto,
    fromText: (url) => ({ url }),
    description: 'Servers reached by server-sent events; an element may be the bare address.',
    listRule: (elements) => repeated(elements, 'url'),
  })
  sse_servers?: RemoteMcpServerDto[];

  @NestedList({
    type: StdioMcpServerDto,
    description: 'Commands added to the tool router that runs inside the sandbox.',
    listRule: (elements) => repeated(elements, 'name'),
  })
  stdio_servers?: StdioMcpServerDto[];

  @NestedList({
    type: RemoteMcpServerDto,
    fromText: (url) => ({ url }),
    description: 'Servers reached by streamable HTTP; an element may be the bare address.',
    listRule: (elements) => repeated(elements, 'url'),
  })
  shttp_servers?: RemoteMcpServerDto[];
}

/** The only members an MCP configuration may have. */
export const MCP_CONFIG_MEMBERS = ['sse_servers', 'stdio_servers', 'shttp_servers'] as const;

/** Elements whose identifying member an earlier element has already. */
function repeated<Member extends string>(
  elements: readonly { index: number; element: Record<Member, unknown> }[],
  member: Member,
): FieldProblem[] {
  const seen = new Set<unknown>();
  return elements.flatMap(({ index, element }) => {
    const value = element[member];
    if (typeof value === 'string' && seen.has(value)) {
      return [
        {
          type: 'value_error',
          msg: `Expected every ${member} once; an earlier element has this one.`,
          path: [String(index), member],
        },
      ];
    }
    seen.add(value);
    return [];
  });
}
