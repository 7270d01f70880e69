import { RpcError } from './json-rpc.mjs';

const never = () => new Promise(() => undefined);
const writeLine = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

/** What no agent should do, or few do. */
export const HOSTILE_TURNS = {
  'long-line': async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    for (let count = 0; count < 1024; count += 1) {
      if (!process.stdout.write(chunk)) {
        await new Promise((resolve) => process.stdout.once('drain', resolve));
      }
    }
  },
  garbage: async ({ session, tell, say }) => {
    process.stdout.write(
      'not JSON\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":12345,"result":{}}\n{"jsonrpc":"2.0","id":{},"method":"x"}\n',
    );
    const method = 'session/update';
    writeLine({
      method,
      params: { sessionId: session.id, update: { sessionUpdate: 'tool_call', toolCallId: 7 } },
    });
    const content = { type: 'text', text: 'of another session' };
    writeLine({
      method,
      params: { sessionId: 'other', update: { sessionUpdate: 'agent_message_chunk', content } },
    });
    await tell('something_new', { value: 1 });
    await say('still here');
  },
  chatter: async ({ say }) => {
    // Notifications of its own, and a log between its messages: some agents write both for as long as they run.
    for (let count = 0; count < 30; count += 1) {
      const text = 'x'.repeat(50_000);
      writeLine({ method: '_own/status', params: { text } });
      process.stdout.write(`[debug] ${text}\n`);
      await say(`${count} `);
    }
  },
  collide: async ({ tell, end }) => {
    for (let count = 0; count < 2; count += 1) {
      await tell('tool_call', { toolCallId: 'same', title: `call ${count}`, status: 'pending' });
      await end('same');
      // Too late, and about an unknown call.
      await end('same', { title: 'changed' });
    }
    await tell('tool_call', { toolCallId: 'open', title: 'never ended', status: 'pending' });
  },
  deep: async ({ call, end }) => {
    let input = {};
    for (let depth = 0; depth < 2_000; depth += 1) {
      input = { input };
    }
    await end(await call('x'.repeat(10_000), { rawInput: input }), { rawOutput: 'y'.repeat(1_000_000) });
  },
  flood: async ({ say }) => {
    for (let count = 0; count < 20_000; count += 1) {
      await say(`${'z'.repeat(99)}\n`);
    }
  },
  'ask-or-fail': async ({ say, call, ask, rest }) => {
    if ((await ask(await call(rest))) !== 'yes') {
      throw new RpcError(-32_603, 'Internal error', 'the operation requires approval');
    }
    await say('allowed');
  },
  shells: async ({ say, request }) => {
    let made = 0;
    for (let count = 0; count < 40; count += 1) {
      made += await request('terminal/create', { command: 'sleep 1000' }).then(
        () => 1,
        () => 0,
      );
    }
    await say(`${made} made`);
  },
  stubborn: async ({ call }) => {
    await call('stubborn', { status: 'in_progress' });
    await never();
  },
  idle: never,
  die: async ({ call }) => {
    await call('dying', { status: 'in_progress' });
    process.stderr.write(`the last words of ${process.env.FAKE_SECRET ?? 'an agent'}\n`);
    process.exit(9);
  },
  'ask-when-cancelled': async ({ session, call, ask }) => {
    const first = await call('first');
    await session.cancelled;
    // Some agents finish the step that they are in, and hear only afterwards that they are cancelled.
    session.late = await ask(first);
    session.later = await ask(await call('later'));
    return 'cancelled';
  },
  'late-answers': ({ say, session }) => say(`${session.late} ${session.later}`),
  'ask-always': async ({ say, call, ask }) =>
    say(await ask(await call('always'), {}, [{ optionId: 'always', name: 'A', kind: 'allow_always' }])),
};
