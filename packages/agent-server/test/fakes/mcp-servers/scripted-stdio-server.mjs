// A tool server over standard streams that behaves as the variable BEHAVIOUR says, without any package of MCP.
import { appendFileSync, closeSync, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

const behaviour = process.env.BEHAVIOUR ?? '';
const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const answer = (id, result) => write({ jsonrpc: '2.0', id, result });

if (behaviour === 'dies at once') {
  process.stderr.write(
    `\u001b[31mError:\u001b[0m no key ${process.env.TOKEN}\n${'at somewhere\n'.repeat(5_000)}`,
  );
  process.stderr.write(`bad key ${process.env.TOKEN}: the database is not reachable\n`);
  process.exit(3);
}
if (behaviour === 'writes garbage') {
  process.stdout.write(
    'Starting on port 3000…\n\n{"half": \n42\nnull\n"text"\n[]\n\uFEFF{"jsonrpc":"2.0","id":99,"result":{}}\n',
  );
}

if (behaviour === 'starts slowly') {
  appendFileSync(`${process.env.GATE}.starts`, 'x');
  while (!existsSync(process.env.GATE)) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const handlers = {
  'server/discover': ({ id }) => {
    answer(id, { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } });
  },
  initialize: ({ id, params }) => {
    if (behaviour === 'has no handshake') {
      const data = { supported: ['2026-07-28'], requested: params.protocolVersion };
      write({ jsonrpc: '2.0', id, error: { code: -32_022, message: 'Unsupported protocol version', data } });
      process.stdin.destroy();
      return;
    }
    answer(id, {
      protocolVersion: params.protocolVersion,
      capabilities:
        behaviour === 'has nulls' ? { tools: { listChanged: null }, prompts: null } : { tools: {} },
      serverInfo: { name: 'scripted', version: '1' },
      ...(behaviour === 'has nulls' && { instructions: null, _meta: null }),
    });
  },
  'tools/list': ({ id }) => {
    answer(id, {
      tools: [{ name: 'act', description: null, inputSchema: { type: 'object', properties: {} } }],
      ...(behaviour === 'has nulls' && { nextCursor: null, _meta: null }),
    });
    if (behaviour === 'starts slowly') {
      appendFileSync(`${process.env.GATE}.listed`, 'x');
    }
  },
  'tools/call': ({ id }) => {
    switch (behaviour) {
      case 'dies in calls':
        process.stderr.write('panic: index out of range\n');
        process.exit(1);
        break;
      case 'dies after calls':
        process.stderr.write('out of memory\n');
        process.stdout.write(
          `${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'last' }] } })}\n`,
          () => process.exit(7),
        );
        break;
      case 'dies slowly':
        process.stderr.write('out of memory\n');
        closeSync(0);
        answer(id, { content: [{ type: 'text', text: 'last' }] });
        setTimeout(() => process.exit(7), 500);
        break;
      case 'answers in text':
        write({ jsonrpc: '2.0', id, result: 'done' });
        break;
      case 'answers as in 1.0':
        write({ id, result: { content: [{ type: 'text', text: 'done' }] }, error: null });
        break;
      default:
        answer(id, { content: [{ type: 'text', text: 'done' }] });
    }
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  handlers[message.method]?.(message);
}
