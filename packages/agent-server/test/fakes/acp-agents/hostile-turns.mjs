import { RpcError } from './json-rpc.mjs';

/** What no agent should do, or few do. Returns why the turn ends. */
export async function misbehave({ command, rest, session, client, tell, say, call, end, ask, otherwise }) {
  switch (command) {
    case 'long-line': {
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      for (let count = 0; count < 1024; count += 1) {
        if (!process.stdout.write(chunk)) {
          await new Promise((resolve) => process.stdout.once('drain', resolve));
        }
      }
      return 'end_turn';
    }
    case 'garbage':
      process.stdout.write(
        'not JSON\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":12345,"result":{}}\n{"jsonrpc":"2.0","id":{},"method":"x"}\n',
      );
      process.stdout.write(
        `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"${session.id}","update":{"sessionUpdate":"tool_call","toolCallId":7}}}\n`,
      );
      process.stdout.write(
        `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of another session"}}}}\n`,
      );
      await tell('something_new', { value: 1 });
      await say('still here');
      return 'end_turn';
    case 'chatter':
      // Notifications of its own, and a log between its messages: some agents write both for as long as they run.
      for (let count = 0; count < 30; count += 1) {
        const text = 'x'.repeat(50_000);
        process.stdout.write(
          `${JSON.stringify({ jsonrpc: '2.0', method: '_own/status', params: { text } })}\n[debug] ${text}\n`,
        );
        await say(`${count} `);
      }
      return 'end_turn';
    case 'collide': {
      for (let count = 0; count < 2; count += 1) {
        await tell('tool_call', { toolCallId: 'same', title: `call ${count}`, status: 'pending' });
        await end('same');
        // Too late, and about an unknown call.
        await end('same', { title: 'changed' });
      }
      await tell('tool_call', { toolCallId: 'open', title: 'never ended', status: 'pending' });
      return 'end_turn';
    }
    case 'deep': {
      let input = {};
      for (let depth = 0; depth < 2_000; depth += 1) {
        input = { input };
      }
      await end(await call('x'.repeat(10_000), { rawInput: input }), { rawOutput: 'y'.repeat(1_000_000) });
      return 'end_turn';
    }
    case 'flood':
      for (let count = 0; count < 20_000; count += 1) {
        await say(`${'z'.repeat(99)}\n`);
      }
      return 'end_turn';
    case 'ask-or-fail': {
      const id = await call(rest);
      if ((await ask(id)) !== 'yes') {
        throw new RpcError(-32_603, 'Internal error', 'the operation requires approval');
      }
      await say('allowed');
      return 'end_turn';
    }
    case 'shells': {
      const made = [];
      for (let count = 0; count < 40; count += 1) {
        made.push(
          await client.request('terminal/create', { sessionId: session.id, command: 'sleep 1000' }).then(
            () => 'made',
            () => 'refused',
          ),
        );
      }
      await say(`${made.filter((one) => one === 'made').length} made`);
      return 'end_turn';
    }
    case 'stubborn':
      await call('stubborn', { status: 'in_progress' });
      await new Promise(() => undefined);
      return 'end_turn';
    case 'idle':
      await new Promise(() => undefined);
      return 'end_turn';
    case 'die':
      await call('dying', { status: 'in_progress' });
      process.stderr.write(`the last words of ${process.env.FAKE_SECRET ?? 'an agent'}\n`);
      process.exit(9);
      return 'end_turn';
    case 'ask-when-cancelled': {
      const first = await call('first');
      await session.cancelled;
      // Some agents finish the step that they are in, and hear only afterwards that they are cancelled.
      session.late = await ask(first);
      session.later = await ask(await call('later'));
      return 'cancelled';
    }
    case 'late-answers':
      await say(`${session.late} ${session.later}`);
      return 'end_turn';
    case 'ask-always': {
      const answer = await ask(await call('always'), {}, [
        { optionId: 'always', name: 'A', kind: 'allow_always' },
      ]);
      await say(answer);
      return 'end_turn';
    }
    default:
      await say(otherwise);
      return 'end_turn';
  }
}
