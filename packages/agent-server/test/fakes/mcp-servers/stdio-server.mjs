// A tool server over standard streams, as users write them. It starts a helper of its own that ignores hang-ups.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { z } from 'zod';

const helper = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
if (process.env.PID_FILE) {
  writeFileSync(process.env.PID_FILE, `${process.pid} ${helper.pid}`);
}
const server = new McpServer({ name: 'stdio', version: '1.0.0' });
server.registerTool('shout', { description: 'Loud.', inputSchema: { text: z.string() } }, ({ text }) => ({
  content: [{ type: 'text', text: text.toUpperCase() }],
}));
server.registerTool('environment', { description: 'Names of variables.' }, () => ({
  content: [{ type: 'text', text: Object.keys(process.env).toSorted().join(' ') }],
}));
await server.connect(new StdioServerTransport());
