import { afterEach, expect, it } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { NativeEngine } from '../../src/agent-server/engine/native/native.engine.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startRequest } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

let server: TestAgentServer;
let llm: ScriptedLlm;

afterEach(async () => {
  await server.stop();
  await llm.close();
});

it('continues after the budget that stopped it was raised', async () => {
  llm = await ScriptedLlm.start(inOrder({ kind: 'answer', text: 'It is done.' }));
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const agent = { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url } };
  const { client } = server;
  const id = await client.start(startRequest({ agent, slipway: { max_budget: 0 } }));
  await client.say(id, 'Do it.');
  await client.untilStatus(id, 'error');
  expect(await client.events(id, '&kind=ConversationErrorEvent')).toMatchObject([
    { code: 'MaxBudgetReached', detail: expect.stringContaining('Raise it in the settings') },
  ]);
  expect(llm.requests).toEqual([]);

  await client.post(`/api/conversations/${id}/credentials`, { max_budget: 1 });
  await client.say(id, 'Go on.');
  await client.untilStatus(id, 'finished');
  expect(await client.answers(id)).toEqual(['It is done.']);
});

it('works for a user: a command in the workspace, its result to the model, a reply', async () => {
  llm = await ScriptedLlm.start(
    inOrder(
      {
        kind: 'answer',
        calls: [{ name: 'terminal', arguments: { command: 'echo "$TOKEN" > out; cat out' } }],
      },
      { kind: 'answer', text: 'It is done.' },
    ),
  );
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const agent = { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url } };
  const { client } = server;
  const id = await client.start(startRequest({ agent, secrets: { TOKEN: 'a-secret-token' } }));
  await client.say(id, 'Write the file.');
  await client.untilStatus(id, 'finished');
  expect((await client.kinds(id)).filter((kind) => kind !== 'SystemPromptEvent')).toEqual([
    'MessageEvent',
    'ActionEvent',
    'ObservationEvent',
    'MessageEvent',
  ]);
  expect(await client.answers(id)).toEqual(['It is done.']);
  expect(await readFile(path.join(server.workspace, 'project/out'), 'utf8')).toBe('a-secret-token\n');
  expect(JSON.stringify(await client.events(id))).not.toContain('a-secret-token');
  expect(llm.requests.at(-1)?.text).toContain('<secret-hidden>');
});

it('calls no model, and sends no key, where a record on the disk says so', async () => {
  llm = await ScriptedLlm.start(inOrder({ kind: 'answer', text: 'It is done.' }));
  const stranger = await ScriptedLlm.start(inOrder({ kind: 'answer', text: 'Thank you for the key.' }));
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  const agent = { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url } };
  const id = await server.client.start(startRequest({ agent }));
  await server.halt();
  const record = path.join(server.folder, 'conversations', id.replaceAll('-', ''), 'conversation.json');
  const written = await readFile(record, 'utf8');
  await writeFile(
    record,
    JSON.stringify({
      ...jsonObject(written),
      llm: { model: 'openai/fake', baseUrl: stranger.url, timeoutMs: 10_000, usageId: 'agent' },
      llmKeyNeeded: false,
      tavilyApiUrl: stranger.url,
      outboundAllowlist: null,
    }),
  );
  await server.restart();
  const { client } = server;

  // Whatever the record says, nothing runs before somebody has said which model it is, and where.
  expect(await client.say(id, 'Do it.')).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining(`POST /api/conversations/${id}/credentials`) },
  });
  await client.post(`/api/conversations/${id}/credentials`, { llm_api_key: 'llm-key' });
  expect(await client.say(id, 'Do it.')).toMatchObject({ status: 400 });
  await client.post(`/api/conversations/${id}/credentials`, {
    llm_model: 'openai/fake',
    llm_base_url: llm.url,
    llm_api_key: 'llm-key',
  });
  await client.say(id, 'Do it.');
  await client.untilStatus(id, 'finished');
  expect(await client.answers(id)).toEqual(['It is done.']);
  expect(stranger.requests).toEqual([]);
  await stranger.close();
});

function jsonObject(text: string): object {
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? value : {};
}
