import type { McpToolboxOptions } from '../../../src/tools/mcp/mcp-toolbox.js';
import { NEVER_MS } from '../memory-engine-host.js';

/** Options of a conversation that has no folder of its own, and lets its tool servers take all the time that they need. */
export function toolboxOptions(changes: Partial<McpToolboxOptions> = {}): McpToolboxOptions {
  const environment = { PATH: process.env['PATH'] ?? '' };
  const times = { connectTimeoutMs: NEVER_MS, slowAfterMs: NEVER_MS };
  return { workingDir: '/', environment, wrapper: [], checkUrl: async () => null, ...times, ...changes };
}
