/** What no agent should do. Returns why the turn ends. */
export async function misbehave({ command, session, tell, say, call, end, otherwise }) {
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
    default:
      await say(otherwise);
      return 'end_turn';
  }
}
