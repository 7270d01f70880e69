import { describe, expect, it } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { call, calls, page, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent } from './native-agent.js';

const agent = nativeAgent();
const twice = JSON.stringify(JSON.stringify({ command: 'echo two' }));
const view = { command: 'view', path: 'lines.txt', view_range: ['2', '3'] };

// anomalyco/opencode#7513, modelcontextprotocol/typescript-sdk#1361: valid JSON that is refused because it is a text.
it.each([
  ['a flag and a number', 'terminal', { command: 'echo two', timeout: '30', reset: 'true' }, { timeout: 30 }],
  ['a list of texts', 'file_editor', view, { view_range: [2, 3] }],
  ['nothing', 'file_editor', { ...view, view_range: 'null' }, { view_range: null }],
  ['everything', 'terminal', twice, { command: 'echo two' }],
])('a call whose arguments give %s as text is run', async (_, tool, args, action) => {
  await writeFile(join(agent.folder, 'lines.txt'), 'one\ntwo\nthree\n');
  const host = await agent.run(inOrder(call(tool, args), say('done')));
  expect(host.ofKind('AgentErrorEvent')).toEqual([]);
  expect(host.ofKind('ActionEvent')).toMatchObject([{ action }]);
  const [asked, result] = agent.llm.requests[1]?.messages.slice(-2) ?? [];
  expect(result?.content).toContain('two');
  const replayed: unknown = JSON.parse(asked?.tool_calls?.[0]?.function.arguments ?? '');
  expect(replayed).toMatchObject({ command: expect.any(String) });
});

// NousResearch/hermes-agent#54879, #26053, Tencent/WeKnora#1461: a step for each mark that is wrong.
describe('arguments that are no JSON', () => {
  const whole = '{"command": "echo one"}';
  it.each([
    ['twice the same', whole + whole, 'echo one'],
    ['twice, on two lines', `${whole}\n${whole}`, 'echo one'],
    ['two objects, of which the first counts', `${whole}{"command": "echo two"}`, 'echo one'],
    ['line breaks inside of a text', '{"command": "echo one\necho two"}', 'echo one\necho two'],
    ['a comma at the end', '{"command": "echo one",}', 'echo one'],
    ['no end', '{"command": "echo one"', 'echo one'],
    ['apostrophes', "{'command': 'echo one', 'reset': False}", 'echo one'],
  ])('are repaired: %s', async (_, written, command) => {
    const host = await agent.run(inOrder(call('terminal', written), say('Done.')));
    expect(host.ofKind('AgentErrorEvent')).toEqual([]);
    expect(host.ofKind('ActionEvent')).toMatchObject([{ action: { command } }]);
    const sent = agent.llm.requests[1]?.messages.at(-2)?.tool_calls?.[0]?.function.arguments ?? '';
    expect(JSON.parse(sent)).toMatchObject({ command });
  });

  it.each([
    ['a quotation mark that is not escaped', '{"command": "echo "one""}'],
    ['a text without an end', '{"command": "echo one'],
    ['words', 'echo one'],
    ['words behind them', `${whole} and then`],
    ['a list', '["echo one"]'],
    ['much', `{"command": "echo "one"", "timeout": ${'9'.repeat(2_000)}}`],
  ])('go back as they were written where they may mean something else: %s', async (_, written) => {
    const host = await agent.run(inOrder(call('terminal', written), say('Done.')));
    expect(host.ofKind('ObservationEvent')).toEqual([]);
    const [asked, result] = agent.llm.requests[1]?.messages.slice(-2) ?? [];
    expect(JSON.parse(asked?.tool_calls?.[0]?.function.arguments ?? '')).toEqual({});
    expect(result?.content).toContain(written);
  });
});

// https://github.com/mcp-use/mcp-use/issues/90: messages[9].tool_calls[0].function.name does not match the pattern.

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
  expect(new Set(host.ofKind('ActionEvent').map(({ tool_call_id: id }) => id)).size).toBe(thoughts.length);
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

/** What the model reads of a command's output, and what the event shows. */
async function outputOf(command: string): Promise<{ read: string; shown: string }> {
  const host = await agent.run(inOrder(call('terminal', { command }), say('done')));
  const [event] = host.ofKind('ObservationEvent');
  const shown =
    event?.observation.content.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '';
  const read = agent.llm.requests[1]?.messages.at(-1)?.content;
  return { read: typeof read === 'string' ? read : '', shown };
}

// Kilo-Org/kilocode#6811, flosell/lambdacd#88: progress and colours fill the context.
it.each([
  [
    String.raw`for i in $(seq 1 5000); do printf '\rdownloading %5d of 5000' $i; done; echo; echo ready`,
    'downloading  5000 of 5000\nready\n',
  ],
  [String.raw`printf '\033[1;32mPASS\033[0m all\n'`, 'PASS all\n'],
  [`printf '%0500d\\n' 7`, `${'7'.padStart(500, '0')}\n`],
])('is read as a terminal would show it: %s', async (command, expected) => {
  const { read, shown } = await outputOf(command);
  expect(read.startsWith(`${expected}[Exit code 0`)).toBe(true);
  expect(shown.startsWith(`${expected}[Exit code 0`)).toBe(true);
});

it('CR LF is LF for the model only', async () => {
  const { read, shown } = await outputOf(String.raw`printf 'one\r\ntwo\r\n'`);
  expect(read).toMatch(/^one\ntwo\n\[Exit/);
  expect(shown).toMatch(/^one\r\ntwo\r\n?\[Exit/);
});

// https://github.com/anthropics/claude-code/issues/56064: half an emoji in the log, and no request is accepted any more.
it.each([14_998, 14_999, 15_000])('is cut between characters: an emoji after %d others', async (before) => {
  const xs = `head -c ${before} /dev/zero | tr '\\0' x`;
  const { shown } = await outputOf(`${xs}; printf '😀'; head -c 20000 /dev/zero | tr '\\0' y`);
  expect(agent.llm.refusals).toEqual([]);
  expect(shown).toContain('characters left out');
  expect(JSON.stringify(shown)).not.toMatch(/\\ud[89a-f]|\u{fffd}/iu);
});
