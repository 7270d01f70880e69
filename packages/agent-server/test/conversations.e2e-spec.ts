import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

const saying = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] });

async function preflight(url: string, origin: string): Promise<unknown[]> {
  const headers = { Origin: origin, 'Access-Control-Request-Method': 'POST' };
  const response = await fetch(`${url}/api/conversations`, { method: 'OPTIONS', headers });
  return [response.status, response.headers.get('access-control-allow-origin')];
}

describe('conversations of the agent server', () => {
  const server = useAgentServer(startTestAgentServer);

  it('has a new instance id after each start', async () => {
    const instanceId = async () => jsonText(await server.client.get('/server_info'), 'instance_id');
    const first = await instanceId();
    expect(await instanceId()).toBe(first);
    await server.restart();

    expect(await instanceId()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(await instanceId()).not.toBe(first);
  });

  it.each([undefined, '', 'wrong', 'session-key-of-a-tes'])('rejects the key %j', async (key) => {
    const headers = key === undefined ? {} : { 'X-Session-API-Key': key };
    const response = await fetch(`${server.client.url}/api/conversations/count`, { headers });
    expect([response.status, await response.json()]).toEqual([401, { detail: 'Unauthorized' }]);
  });

  it('allows pages of this machine to call it, and no others', async () => {
    expect(await preflight(server.client.url, 'http://localhost:3000')).toEqual([
      204,
      'http://localhost:3000',
    ]);
    expect(await preflight(server.client.url, 'https://elsewhere.example')).toEqual([401, null]);
  });

  it('starts a conversation once, however often it is requested', async () => {
    const request = startRequest({ conversation_id: randomUUID().replaceAll('-', '').toUpperCase() });
    const [first, second] = await Promise.all([
      server.client.post('/api/conversations', request),
      server.client.post('/api/conversations', request),
    ]);
    expect(new Set([first.status, second.status])).toEqual(new Set([200, 201]));
    expect(jsonAt(first.body, 'id')).toEqual(jsonAt(second.body, 'id'));
    expect(first.body).toMatchObject({
      agent: {
        kind: 'Agent',
        llm: { model: 'openai/fake', api_key: '**********' },
        tools: [{ name: 'terminal' }],
      },
      workspace: { kind: 'LocalWorkspace', working_dir: path.join(server.workspace, 'project') },
      execution_status: 'idle',
      confirmation_policy: { kind: 'NeverConfirm' },
      stats: { usage_to_metrics: { agent: { accumulated_cost: 0 } } },
      max_iterations: 500,
      title: null,
    });
  });

  it('starts to work on an initial message, and responds 409 to a second run meanwhile', async () => {
    const id = await server.client.start({ initial_message: { ...saying('step'), run: false } });
    expect(await server.client.status(id)).toBe('running');
    expect(await server.client.act(id, 'run')).toEqual({
      status: 409,
      body: { detail: 'Conversation already running. Wait for completion or pause first.' },
    });
    await server.client.act(id, 'pause');
    await server.client.untilStatus(id, 'paused');
    expect(await server.client.kinds(id)).toEqual(['MessageEvent', 'PauseEvent']);
    expect((await server.client.act(id, 'run')).status).toBe(200);
    await server.client.act(id, 'interrupt');
    expect(await server.client.status(id)).toBe('paused');
  });

  it.each([
    ['before its initial message', []],
    ['between that and its run', ['say hello']],
  ])('works on its initial message, once, when it was killed %s', async (_when, said) => {
    const conversation_id = randomUUID();
    await server.client.start({ conversation_id });
    for (const text of said) {
      await server.client.say(conversation_id, text, false);
    }
    await server.restart();
    const request = startRequest({ conversation_id, initial_message: saying('say hello') });
    const again = async () => (await server.client.post('/api/conversations', request)).status;
    expect(await Promise.all([again(), again()])).toEqual([200, 200]);
    await server.client.untilStatus(conversation_id, 'finished');
    expect(await again()).toBe(200);
    expect(await server.client.kinds(conversation_id)).toEqual(['MessageEvent', 'MessageEvent']);
  });

  it('takes its initial message beside the log of one whose deletion was killed half-way', async () => {
    const conversation_id = randomUUID();
    await server.client.start({ conversation_id });
    await server.client.talk(conversation_id, 'say hello');
    await server.halt();
    const folder = server.folderOf(conversation_id);
    await rm(path.join(folder, 'conversation.json'));
    await server.restart();
    await server.client.start({ conversation_id, initial_message: saying('say again') });
    await server.client.untilStatus(conversation_id, 'finished');
    const answer = await server.client.get(`/api/conversations/${conversation_id}/agent_final_response`);
    expect(answer).toEqual({ response: 'again' });
  });

  it('says that its disk is full', async () => {
    const id = await server.client.start();
    const folder = server.folderOf(id);
    await symlink('/dev/full', path.join(folder, 'conversation.json.new'));
    expect(await server.client.send('PATCH', `/api/conversations/${id}`, { title: 'New' })).toEqual({
      status: 507,
      body: { detail: expect.stringContaining('No space is left') },
    });
  });

  it('begins anew with an id whose conversation is being deleted', async () => {
    const conversation_id = randomUUID();
    await server.client.start({ conversation_id });
    await server.client.say(conversation_id, 'step');
    const deleted = server.client.send('DELETE', `/api/conversations/${conversation_id}`);
    // Of two requests at a time, either may come first.
    await until(async () => (await server.client.status(conversation_id)) === null);
    await server.client.start({ conversation_id });
    await deleted;
    await server.restart();
    expect(await server.client.status(conversation_id)).toBe('idle');
    expect(await server.client.kinds(conversation_id)).toEqual([]);
  });

  it('closes what an interrupted run left open', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'call x');
    await until(async () => (await server.client.kinds(id)).includes('ActionEvent'));
    await server.client.act(id, 'interrupt');
    const last = (await server.client.kinds(id)).slice(1);
    expect(last).toEqual(['ActionEvent', 'PauseEvent', 'AgentErrorEvent']);
  });

  it('needs a message before it runs', async () => {
    const id = await server.client.start();
    expect(await server.client.act(id, 'run')).toMatchObject({ status: 400 });
    await server.client.say(id, 'say hello', false);
    expect(await server.client.status(id)).toBe('idle');
    expect((await server.client.act(id, 'run')).status).toBe(200);
    await server.client.untilStatus(id, 'finished');
    expect(await server.client.answers(id)).toEqual(['hello']);
    expect((await server.client.act(id, 'run')).status).toBe(200);
    await server.client.say(id, 'say again', false);
    expect(await server.client.status(id)).toBe('idle');
  });

  it('goes on with a message without being idle before', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'say hello');
    await server.client.untilStatus(id, 'finished');
    await server.client.say(id, 'say again');
    await until(async () => (await server.client.answers(id)).includes('again'));
    const updates = await server.client.events(id, '&kind=ConversationStateUpdateEvent');
    const statuses = updates.filter((event) => jsonText(event, 'key') === 'execution_status');
    const values = statuses.map((event) => jsonText(event, 'value')).slice(0, 3);
    expect(values).toEqual(['running', 'finished', 'running']);
  });

  it('handles a message that came when the run was about to end', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'read');
    await server.client.say(id, 'say late');
    await until(async () => (await server.client.answers(id)).length > 0);
    expect(await server.client.answers(id)).toEqual(['late']);
  });

  it.each([
    [{ accept: true }, 'accepted', null],
    [{ accept: false, reason: 'too risky' }, 'rejected', 'too risky'],
    [{ accept: false }, 'rejected', 'User rejected the action.'],
  ])('hands the answer %j to the engine', async (answer, said, expected) => {
    const id = await server.client.start();
    await server.client.talk(id, 'ask x', 'waiting_for_confirmation');
    await server.client.act(id, 'events/respond_to_confirmation', answer);
    await server.client.untilStatus(id, 'finished');
    expect(await server.client.answers(id)).toEqual([said]);
    expect(server.engines.at(-1)?.confirmations).toEqual([expected]);
    const again = await server.client.act(id, 'events/respond_to_confirmation', answer);
    expect(again.status).toBe(409);
  });

  it('takes a run as confirmation, but a message as rejection', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'ask x', 'waiting_for_confirmation');
    await server.client.talk(id, 'ask y', 'waiting_for_confirmation');
    const asked = ['MessageEvent', 'ActionEvent'];
    expect(await server.client.kinds(id)).toEqual([...asked, 'UserRejectObservation', ...asked]);
    await server.client.act(id, 'run');
    await server.client.untilStatus(id, 'finished');
    expect(await server.client.answers(id)).toEqual(['accepted']);
  });

  it('shows why a run failed, masked, and runs again with the next message', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'fail the key llm-key-of-a-test is wrong', 'error');
    const [event] = await server.client.events(id, '&kind=ConversationErrorEvent');
    expect(event).toMatchObject({ code: 'EngineFailed', detail: 'the key <secret-hidden> is wrong' });
    await server.client.talk(id, 'say fine');
  });

  it('answers questions during a run', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'step');
    const before = await server.client.kinds(id);
    const ask = async (question: string) => await server.client.act(id, 'ask_agent', { question });
    expect(await ask('is llm-key-of-a-test set?')).toMatchObject({
      status: 200,
      body: { response: expect.stringMatching(/^is <secret-hidden> set\? \(\d+ events\)$/) },
    });
    expect(await ask('fail')).toEqual({ status: 502, body: { detail: 'the model is away' } });
    expect((await ask('')).status).toBe(422);
    expect(await server.client.kinds(id)).toEqual(before);
    expect(await server.client.status(id)).toBe('running');
    await server.client.act(id, 'interrupt');
  });

  it('condenses on request, and has the same status afterwards', async () => {
    const id = await server.client.start();
    const condense = async () => await server.client.act(id, 'condense');
    await server.client.talk(id, 'say hello');
    expect(await condense()).toEqual({ status: 200, body: { success: true } });
    expect(await server.client.status(id)).toBe('finished');
    expect((await server.client.kinds(id)).at(-1)).toBe('Condensation');
    await server.client.talk(id, 'ask x', 'waiting_for_confirmation');
    expect((await condense()).status).toBe(409);
    await server.client.say(id, 'step');
    expect((await condense()).status).toBe(409);
    await server.client.act(id, 'interrupt');
  });

  it('runs no more agents than allowed; queued ones can be paused', async () => {
    const small = await startTestAgentServer({ maxConcurrentRuns: 1 });
    const begin = async (text: string): Promise<string> => {
      const id = await small.client.start();
      await small.client.say(id, text);
      return id;
    };
    const [first, second, third] = [await begin('step'), await begin('say second'), await begin('say third')];
    expect(await small.client.status(third)).toBe('running');
    await small.client.act(second, 'pause');
    await small.client.untilStatus(second, 'paused');
    expect(await small.client.answers(third)).toEqual([]);
    await small.client.act(first, 'pause');
    await small.client.untilStatus(third, 'finished');
    expect(await small.client.answers(third)).toEqual(['third']);
    await small.stop();
  });

  it('forgets that it was running when it is paused after a restart', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'step', 'running');
    await server.restart();
    const paused = { execution_status: 'paused', agent_state: { was_running: true } };
    expect(await server.client.info(id)).toMatchObject(paused);

    await server.client.act(id, 'pause');

    expect((await server.client.kinds(id)).at(-1)).toBe('PauseEvent');
    expect(jsonAt(await server.client.info(id), 'agent_state')).toEqual({});
    await server.restart();
    expect(await server.client.info(id)).toMatchObject({ ...paused, agent_state: {} });
    expect(jsonAt(await server.client.info(id), 'agent_state')).toEqual({});
  });

  it('was not running for its user when it is killed after a request to pause', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'step', 'running');
    await server.client.act(id, 'pause');
    await server.client.untilStatus(id, 'paused');
    await server.halt();
    // As if it had been killed before the step was over.
    const record = path.join(server.folderOf(id), 'conversation.json');
    const text = await readFile(record, 'utf8');
    await writeFile(record, text.replace('"status":"paused"', '"status":"running"'));

    await server.restart();

    expect(text).toContain('"status":"paused"');
    expect(await server.client.status(id)).toBe('paused');
    expect(jsonAt(await server.client.info(id), 'agent_state')).toEqual({});
  });
});
