import { expect, it } from '@jest/globals';
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
