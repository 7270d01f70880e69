import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { NativeAgent } from './native-agent.js';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
  await writeFile(join(agent.folder, 'lines.txt'), 'one\ntwo\nthree\n');
});
afterAll(async () => {
  await agent.close();
});

// anomalyco/opencode#7513, modelcontextprotocol/typescript-sdk#1361: valid JSON that is refused because it is a text.
it.each([
  ['a number', 'terminal', { command: 'echo two', timeout: '30' }, { timeout: 30 }],
  ['a flag', 'terminal', { command: 'echo two', reset: 'true' }, { reset: true }],
  [
    'a list',
    'file_editor',
    { command: 'view', path: 'lines.txt', view_range: '[2, 2]' },
    { view_range: [2, 2] },
  ],
  [
    'a list of texts',
    'file_editor',
    { command: 'view', path: 'lines.txt', view_range: ['2', '3'] },
    { view_range: [2, 3] },
  ],
  [
    'nothing',
    'file_editor',
    { command: 'view', path: 'lines.txt', view_range: 'null' },
    { view_range: null },
  ],
  [
    'everything',
    'terminal',
    JSON.stringify(JSON.stringify({ command: 'echo two' })),
    { command: 'echo two' },
  ],
  ['a block of code', 'terminal', '```json\n{"command": "echo two"}\n```', { command: 'echo two' }],
])('a call whose arguments give %s as text is run', async (_, tool, args, action) => {
  const host = await agent.run(inOrder(call(tool, args), say('done')));
  expect(host.ofKind('AgentErrorEvent')).toEqual([]);
  expect(host.ofKind('ActionEvent')).toMatchObject([{ action }]);
  expect(agent.llm.requests[1]?.messages.at(-1)?.content).toContain('two');
  const replayed: unknown = JSON.parse(
    agent.llm.requests[1]?.messages.at(-2)?.tool_calls?.[0]?.function.arguments ?? '',
  );
  expect(replayed).toMatchObject({ command: expect.any(String) });
});

it('a text that is meant as one stays a text', async () => {
  const host = await agent.run(
    inOrder(call('think', { thought: '30' }), call('terminal', { command: 'true' }), say('done')),
  );
  expect(host.ofKind('ActionEvent')).toMatchObject([
    { action: { thought: '30' } },
    { action: { command: 'true' } },
  ]);
});
