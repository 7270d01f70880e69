import { describe, expect, it } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { call, say } from '../fakes/scripted-llm.answers.js';
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
