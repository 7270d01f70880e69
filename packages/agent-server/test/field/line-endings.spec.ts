import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { NativeAgent } from './native-agent.js';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

const edit = (args: Record<string, unknown>) => call('file_editor', { path: 'file.txt', ...args });

// charmbracelet/crush#684, MoonshotAI/kimi-cli#2191: files with CRLF cannot be edited, or lose it.
it.each([
  ['CRLF', 'one\r\ntwo\r\n', 'one\r\nTWO\r\nnew\r\n'],
  ['LF', 'one\ntwo\n', 'one\nTWO\nnew\n'],
  ['CRLF behind a byte order mark', '\uFEFFone\r\ntwo\r\n', '\uFEFFone\r\nTWO\r\nnew\r\n'],
  ['both', 'zero\none\r\ntwo\r\n', 'zero\none\r\nTWO\r\nnew\r\n'],
])('a file with %s is edited as it was shown, and keeps its line breaks', async (_, content, expected) => {
  const path = join(agent.folder, 'file.txt');
  await writeFile(path, content);
  const line = expected.startsWith('zero') ? 3 : 2;
  const host = await agent.run(
    inOrder(
      edit({ command: 'view' }),
      edit({ command: 'str_replace', old_str: 'one\ntwo', new_str: 'one\nTWO' }),
      edit({ command: 'insert', insert_line: line, new_str: 'new\n' }),
      say('done'),
    ),
  );
  expect(host.ofKind('ObservationEvent').map(({ observation }) => observation)).toMatchObject(
    Array.from({ length: 3 }, () => ({ is_error: false })),
  );
  expect(await readFile(path, 'utf8')).toBe(expected);
});
