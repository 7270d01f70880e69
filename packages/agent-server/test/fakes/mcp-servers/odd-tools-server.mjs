// A tool server over standard streams whose tools have the schemas and names of real servers that model APIs refuse.
// With a number as its argument it has that many tools of the usual kind.
import { createInterface } from 'node:readline';

const text = { type: 'string' };
const count = Number(process.argv[2] ?? 0);
const odd = {
  'no properties': { type: 'object' },
  no_properties: { type: 'object', properties: { kept: text } },
  no_items: { type: 'object', properties: { list: { type: 'array' } } },
  nothing: { $schema: 'http://json-schema.org/draft-07/schema#' },
  choice: {
    type: 'object',
    anyOf: [
      { properties: { a: text }, required: ['a'] },
      { properties: { b: text }, required: ['b'] },
    ],
  },
  references: { type: 'object', properties: { at: { $ref: '#/$defs/at' } }, $defs: { at: text } },
  'dots.and/slashes': { type: 'object', properties: { $filter: text, 'user/name': { type: 'int' } } },
  optional: { type: 'object', properties: { size: { type: ['integer', 'null'] } } },
  [`long-${'x'.repeat(80)}`]: { type: 'object', properties: {}, required: ['gone'] },
};

const usual = Array.from({ length: count }, (_, index) => [
  `usual_${String(index).padStart(3, '0')}`,
  { type: 'object', properties: { a: text } },
]);
const schemas = count === 0 ? odd : Object.fromEntries(usual);
const PIXEL = 'iVBORw0KGgo=';

const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'odd', version: '1.0.0' },
  }),
  'tools/list': () => ({
    tools: Object.entries(schemas).map(([name, inputSchema]) => ({
      name,
      inputSchema: { type: 'object', ...inputSchema, ...(name === 'nothing' && { type: undefined }) },
    })),
  }),
  'tools/call': ({ name, arguments: args }) => ({
    content: [
      { type: 'text', text: JSON.stringify([name, args]) },
      ...(args?.picture === true ? [{ type: 'image', mimeType: 'image/png', data: PIXEL }] : []),
    ],
  }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (results[method] !== undefined) {
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: results[method](params) })}\n`);
  }
}
