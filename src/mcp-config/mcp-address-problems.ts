import type { InputProblem } from '../common/errors/invalid-input.error.js';
import type { OutboundAddresses } from '../common/http/outbound-addresses.js';
import type { McpConfigDto } from './dto/mcp-config.dto.js';

/**
 * Addresses of a configuration that the operator does not allow.
 *
 * @param loc where the configuration stands in the request, such as `['body', 'mcp_config']`
 */
export function mcpAddressProblems(
  dto: McpConfigDto,
  addresses: OutboundAddresses,
  loc: readonly string[],
): InputProblem[] {
  return (['sse_servers', 'shttp_servers'] as const).flatMap((list) =>
    (dto[list] ?? []).flatMap(({ url }, index) => {
      const msg = addresses.problem(url);
      return msg === null ? [] : [{ loc: [...loc, list, String(index), 'url'], msg, type: 'value_error' }];
    }),
  );
}
