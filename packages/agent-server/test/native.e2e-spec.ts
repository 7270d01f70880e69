import { describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt } from '@slipway/common/json-access.js';
import { call, calls, say } from './fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from './fakes/scripted-llm.js';
import { nativeServer } from './field/native-server.js';
import { startRequest } from './support/agent-server-client.js';
import { until } from '../../../test/support/until.js';

const native = nativeServer({ pauseGraceMs: 100 });
const client = () => native().server.client;
const requests = () => native().llm.requests;

const start = async (
  answers: Parameters<typeof inOrder>,
  members: Record<string, unknown> = {},
): Promise<string> => await native().begin(inOrder(...answers), members);

it('works for the agent of another conversation, and the log says so', async () => {
  const sender = '8d7b2f7e-1c0a-4f3f-9b6f-2b0c5d4e3a21';
  const said = (text: string): object => ({
    content: [{ type: 'text', text }],
    run: true,
    sender_conversation_id: sender.replaceAll('-', ''),
  });
  const id = await start([say('It is done.'), say('That, too.')], { initial_message: said('Do it.') });
  await client().untilStatus(id, 'finished');
  await client().act(id, 'events', said('Go on.'));
  await until(async () => (await client().events(id, '&kind=MessageEvent')).length === 4);
  await client().untilStatus(id, 'finished');

  const ofAgent = { source: 'agent', sender_conversation_id: sender, llm_message: { role: 'user' } };
  const own = { source: 'agent', llm_message: { role: 'assistant' } };
  expect(await client().events(id, '&kind=MessageEvent')).toMatchObject([ofAgent, own, ofAgent, own]);
  expect(await client().get(`/api/conversations/${id}/agent_final_response`)).toEqual({
    response: 'That, too.',
  });
});

it('reads what the repository says about a file with the first file that it touches, once', async () => {
  const look = call('file_editor', { command: 'view', path: 'docs/a.md' });
  const folder = path.join(native().server.workspace, 'project');
  await mkdir(path.join(folder, 'docs'), { recursive: true });
  await mkdir(path.join(folder, '.github/instructions'), { recursive: true });
  await writeFile(path.join(folder, 'docs/a.md'), 'text');
  const rule = '---\napplyTo: docs/**\n---\nUse British spelling.';
  await writeFile(path.join(folder, '.github/instructions/docs.instructions.md'), rule);
  const model = { model: 'openai/fake', api_key: 'llm-key-5519', base_url: native().llm.url };
  const agent = { kind: 'Agent', agent_context: { load_project_skills: true }, llm: model };
  const id = await start([look, look, say('It is done.')], { agent });
  await client().talk(id, 'Look twice.');
  const [first, second] = await client().events(id, '&kind=ObservationEvent');
  expect(requests()[0]?.text).not.toContain('British');
  expect(JSON.stringify(first)).toContain('Use British spelling.');
  expect(JSON.stringify(second)).not.toContain('British');
  expect(jsonAt(await client().info(id), 'activated_knowledge_skills')).toEqual(['copilot:docs']);
});

it('calls no model, and sends no key, where a record on the disk says so', async () => {
  const id = await start([say('It is done.')]);
  const { server } = native();
  const stranger = await ScriptedLlm.start(inOrder(say('Thank you for the key.')));
  await server.halt();
  const record = path.join(server.folderOf(id), 'conversation.json');
  const written = await readFile(record, 'utf8');
  const model = { model: 'openai/fake', baseUrl: stranger.url, timeoutMs: 10_000, usageId: 'agent' };
  const forged = { llm: model, llmKeyNeeded: false, tavilyApiUrl: stranger.url, outboundAllowlist: null };
  await writeFile(record, JSON.stringify({ ...Object(JSON.parse(written)), ...forged }));
  await server.restart();

  // Whatever the record says, nothing runs before a request has named the model and its address.
  expect(await client().say(id, 'Do it.')).toMatchObject({
    status: 400,
    body: { detail: expect.stringContaining(`POST /api/conversations/${id}/credentials`) },
  });
  await client().act(id, 'credentials', { llm_api_key: 'llm-key' });
  expect(await client().say(id, 'Do it.')).toMatchObject({ status: 400 });
  await native().moveTo(id);
  await client().talk(id, 'Do it.');
  expect(await client().answers(id)).toEqual(['It is done.']);
  expect(stranger.requests).toEqual([]);
  await stranger.close();
});

describe('a pause', () => {
  const pause = async (id: string): Promise<unknown> => await client().act(id, 'pause');
  const goOn = async (id: string): Promise<void> => {
    await client().act(id, 'run');
    await client().untilStatus(id, 'finished');
  };

  /** With a message that the model answers by a command and a thought behind it. */
  const startTwo = async (command: string): Promise<string> => {
    const think = { name: 'think', arguments: { thought: 'not begun' } };
    const both = calls({ name: 'terminal', arguments: { command } }, think);
    const id = await start([both, say('It is done.')]);
    await client().say(id, 'Do it.');
    return id;
  };

  it.each([
    ['says nothing', { kind: 'hang' } as const],
    ['has said a part', { kind: 'stall', text: 'half of an answer' } as const],
  ])('does not await a model that %s, and keeps nothing of it', async (_what, silent) => {
    const id = await start([silent, say('It is done.')]);
    await client().say(id, 'Do it.');
    await until(() => requests().length === 1);

    expect(await pause(id)).toMatchObject({ status: 200 });

    expect(await client().status(id)).toBe('paused');
    expect((await client().kinds(id)).slice(-1)).toEqual(['PauseEvent']);
    expect(await client().answers(id)).toEqual([]);
    await goOn(id);
    expect(await client().answers(id)).toEqual(['It is done.']);
    expect(requests().at(-1)?.text).not.toContain('half of an answer');
  });

  it('ends a tool that takes longer than its grace, and says so to the model', async () => {
    const id = await startTwo('touch begun; sleep 1000');
    await until(() => existsSync(path.join(native().server.workspace, 'project/begun')));

    await pause(id);
    await client().untilStatus(id, 'paused');

    const [observation] = await client().events(id, '&kind=ObservationEvent');
    expect(JSON.stringify(observation)).toContain('The command was interrupted');
    expect(await client().events(id, '&kind=AgentErrorEvent')).toMatchObject([
      { tool_name: 'think', error: 'Not run: the run was interrupted.' },
    ]);
    await goOn(id);
    const { messages } = requests().at(-1) ?? { messages: [] };
    expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
  });

  it('lets a tool complete within its grace, and begins no other', async () => {
    await native().server.restart({ pauseGraceMs: 60_000 });
    const id = await startTwo('until [ -e go ]; do sleep 0.01; done');
    await until(async () => (await client().kinds(id)).includes('ActionEvent'));
    await pause(id);
    await writeFile(path.join(native().server.workspace, 'project/go'), '');
    await client().untilStatus(id, 'paused');
    const [observation] = await client().events(id, '&kind=ObservationEvent');
    expect(observation).toMatchObject({ observation: { exit_code: 0 } });
    expect(await client().events(id, '&kind=AgentErrorEvent')).toMatchObject([{ tool_name: 'think' }]);
    await goOn(id);
  });
});

describe('a result of a form that the client chose', () => {
  const resultSchema = {
    type: 'object',
    properties: {
      passed: { type: 'boolean' },
      failures: { type: 'array', items: { $ref: '#/$defs/failure' } },
    },
    required: ['passed'],
    additionalProperties: false,
    $defs: { failure: { type: 'string', minLength: 1 } },
  };

  const form = { slipway: { result_schema: resultSchema } };

  it('ends the work only when it fits, and is asked for where the agent ends with words', async () => {
    const id = await start(
      [
        say('All tests pass.'),
        call('finish', { message: 'Done.', result: { passed: 'yes' } }),
        call('finish', { message: 'Done.' }),
        call('finish', { message: 'Done.', result: { passed: false, failures: ['parser'] } }),
      ],
      form,
    );
    await client().talk(id, 'Run the tests.');
    const failed = ['ActionEvent', 'AgentErrorEvent'];
    expect((await client().kinds(id)).filter((kind) => kind !== 'SystemPromptEvent')).toEqual([
      ...Array.from({ length: 3 }, () => 'MessageEvent'),
      ...failed,
      ...failed,
      'ActionEvent',
      'ObservationEvent',
    ]);
    expect(requests()[2]?.text).toContain('/passed must be boolean');
    expect(requests()[3]?.text).toContain('result: it is missing');
  });

  it('is missing when the agent never gives it', async () => {
    const id = await start([say('Done.')], form);
    await client().talk(id, 'Run the tests.', 'error');
    expect(await client().events(id, '&kind=ConversationErrorEvent')).toMatchObject([
      { code: 'ResultMissing' },
    ]);
    expect(requests()).toHaveLength(4);
  });

  it('is refused with a schema that nothing can be checked with', async () => {
    for (const schema of [{ type: 'strange' }, { $ref: 'https://example.com/schema' }, { pattern: '(' }]) {
      const request = startRequest({ slipway: { result_schema: schema } });
      expect(await client().post('/api/conversations', request)).toMatchObject({ status: 422 });
    }
  });
});
