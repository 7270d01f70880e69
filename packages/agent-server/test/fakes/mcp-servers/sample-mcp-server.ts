import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';

/** Tools that a test can tell apart: one that answers, one that says no, one that shows a picture. */
export function sampleMcpServer(): McpServer {
  const server = new McpServer({ name: 'sample', version: '1.0.0' });
  server.registerTool(
    'add',
    { description: 'Adds two numbers.', inputSchema: { a: z.number(), b: z.number() } },
    ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  );
  server.registerTool('refuse', { description: 'Says no.' }, () => ({
    isError: true,
    content: [{ type: 'text', text: 'no' }],
  }));
  server.registerTool('picture', { description: 'A picture.' }, () => ({
    content: [{ type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }],
  }));
  // A name that a built-in tool has too.
  server.registerTool('think', { description: 'Thinks elsewhere.' }, () => ({
    content: [{ type: 'text', text: 'thought elsewhere' }],
  }));
  return server;
}
