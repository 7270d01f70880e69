import { expect, it } from '@jest/globals';
import { call, calls, page, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent } from './native-agent.js';

// https://github.com/mcp-use/mcp-use/issues/90: messages[9].tool_calls[0].function.name does not match the pattern.

const agent = nativeAgent();

it.each(['functions.shell', 'tool with blanks', 'größe', `x${'y'.repeat(80)}`, '😀'])(
  'the name %j is refused with its own words, and the conversation goes on',
  async (name) => {
    const host = await agent.run(inOrder(call(name, { command: 'ls' }, { id: 'odd.id:0' }), say('Done.')));
    expect(host.status).toBe('finished');
    expect(agent.llm.refusals).toEqual([]);
    const tool = agent.llm.requests.at(-1)?.messages.find(({ role }) => role === 'tool');
    expect(tool).toMatchObject({ content: expect.stringContaining(`There is no tool ${name}.`) });
    // What is valid stays as it is.
    expect(tool?.tool_call_id).toBe('odd.id:0');
  },
);

// The namespaces and marks of the templates of gpt-oss (mlc-ai/xgrammar#607), Kimi and Gemini.
it.each([
  'functions.terminal',
  'functions.terminal:0',
  'terminal<|channel|>commentary',
  'terminal<|channel|>json',
  'commentary to=functions.terminal',
  'default_api:terminal',
  'default_api.terminal',
  'tools.terminal',
])('the name %j is that of the tool in its dressing', async (name) => {
  const host = await agent.run(inOrder(call(name, { command: 'echo one' }), say('Done.')));
  expect(host.ofKind('AgentErrorEvent')).toEqual([]);
  expect(host.ofKind('ActionEvent')).toMatchObject([
    { tool_name: 'terminal', action: { command: 'echo one' } },
  ]);
  expect(agent.llm.requests[1]?.messages.at(-2)?.tool_calls?.[0]?.function.name).toBe('terminal');
});

it('answers calls with ids that are missing, twice or too long', async () => {
  const think = (thought: string, id: string) => ({ name: 'think', arguments: { thought }, id });
  const long = `call_${'x'.repeat(80)}`;
  const host = await agent.run(
    inOrder(
      calls(think('one', 'a'), think('two', 'a'), think('three', long)),
      calls(think('four', 'a'), think('five', long)),
      say('Done.'),
    ),
  );
  expect(agent.llm.refusals).toEqual([]);
  const thoughts = ['one', 'two', 'three', 'four', 'five'];
  expect(host.ofKind('ActionEvent')).toMatchObject(thoughts.map((thought) => ({ action: { thought } })));
});

// Ollama gives answers one of 999 ids at random, other servers always the same one.
it('keeps answers apart that have the same id', async () => {
  const answer = (message: object) => {
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }];
    return page(JSON.stringify({ id: 'chatcmpl-7', choices }), 'application/json');
  };
  const think = { name: 'think', arguments: '{"thought":"hm"}' };
  const host = await agent.run(
    inOrder(
      answer({ content: 'First.', reasoning_content: 'one' }),
      answer({ content: 'Second.', tool_calls: [{ id: 'a', type: 'function', function: think }] }),
      answer({ content: 'Third.', reasoning_content: 'three' }),
    ),
  );
  await agent.goOn(host, 'And that.');
  await agent.goOn(host, 'And now?');
  expect(agent.llm.refusals).toEqual([]);
  const said = agent.llm.requests.at(-1)?.messages.filter(({ role }) => role === 'assistant');
  expect(said?.map(({ content, tool_calls: made }) => [content, made?.length ?? 0])).toEqual([
    ['First.', 0],
    ['Second.', 1],
    ['Third.', 0],
  ]);
});
