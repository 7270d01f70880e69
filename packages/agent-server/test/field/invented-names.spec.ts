import { afterEach, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { call, calls, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
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
  const thoughts = jsonList(await server.client.get(`/api/conversations/${id}/events/search`), 'items')
    .map((event) => jsonText(event, 'action', 'thought'))
    .filter((thought) => thought !== null);
  expect(thoughts).toEqual(['one', 'two', 'three', 'four', 'five']);
});

// Ollama gives answers one of 999 ids at random, other servers always the same one.
it('keeps answers apart that have the same id', async () => {
  const answer = (message: object): ScriptedAnswer => ({
    kind: 'body',
    status: 200,
    type: 'application/json',
    body: JSON.stringify({
      id: 'chatcmpl-7',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    }),
  });
  const think = { name: 'think', arguments: '{"thought":"hm"}' };
  llm = await ScriptedLlm.start(
    inOrder(
      answer({ content: 'First.', reasoning_content: 'one' }),
      answer({ content: 'Second.', tool_calls: [{ id: 'a', type: 'function', function: think }] }),
      answer({ content: 'Third.', reasoning_content: 'three' }),
    ),
  );
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const id = await server.client.start(startWithModelAt(llm.url));
  for (const words of ['Do it.', 'And that.', 'And now?']) {
    await server.client.say(id, words);
    await server.client.untilStatus(id, 'finished');
  }
  expect(llm.refusals).toEqual([]);
  const said = llm.requests.at(-1)?.messages.filter(({ role }) => role === 'assistant');
  expect(said?.map(({ content, tool_calls: made }) => [content, made?.length ?? 0])).toEqual([
    ['First.', 0],
    ['Second.', 1],
    ['Third.', 0],
  ]);
});
