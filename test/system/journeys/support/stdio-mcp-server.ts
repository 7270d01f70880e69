/**
 * A tool server over standard input and output, whole and in plain JavaScript, so that it runs where no library is:
 * one tool, `add` (modelcontextprotocol.io, stdio transport: one JSON-RPC message per line).
 */
export const STDIO_MCP_SERVER = `
import { createInterface } from 'node:readline';

const inputSchema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } };
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'adder', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [{ name: 'add', description: 'Adds two numbers.', inputSchema }] }),
  'tools/call': ({ arguments: { a, b } }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined && answers[method]) {
    console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params ?? {}) }));
  }
});
`;
