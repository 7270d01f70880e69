import { afterEach, expect, it } from '@jest/globals';
import { NativeEngine } from '../../packages/agent-server/src/engine/native/native.engine.js';
import { call, calls, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startWithModelAt } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/mcp-use/mcp-use/issues/90: messages[9].tool_calls[0].function.name does not match the pattern.

let server: TestAgentServer;
let llm: ScriptedLlm;

afterEach(async () => {
  await server.stop();
  await llm.close();
});

it.each(['functions.terminal', 'tool with blanks', 'größe', `x${'y'.repeat(80)}`, '😀'])(
  'the name %j is refused with its own words, and the conversation goes on',
  async (name) => {
    llm = await ScriptedLlm.start(inOrder(call(name, { command: 'ls' }, { id: 'odd.id:0' }), say('Done.')));
    server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
    const id = await server.client.start(startWithModelAt(llm.url));
    await server.client.say(id, 'Do it.');
    await server.client.untilStatus(id, 'finished');
    expect(llm.refusals).toEqual([]);
    const tool = llm.requests.at(-1)?.messages.find(({ role }) => role === 'tool');
    expect(tool).toMatchObject({ content: expect.stringContaining(`There is no tool ${name}.`) });
    // What is valid stays as it is.
    expect(tool?.tool_call_id).toBe('odd.id:0');
  },
);

it('answers calls with ids that are missing, twice or too long', async () => {
  const think = (thought: string, id: string) => ({ name: 'think', arguments: { thought }, id });
  const long = `call_${'x'.repeat(80)}`;
  llm = await ScriptedLlm.start(
    inOrder(
      calls(think('one', 'a'), think('two', 'a'), think('three', long)),
      calls(think('four', 'a'), think('five', long)),
      say('Done.'),
    ),
  );
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const id = await server.client.start(startWithModelAt(llm.url));
  await server.client.say(id, 'Do it.');
  await server.client.untilStatus(id, 'finished');
  expect(llm.refusals).toEqual([]);
});
