import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { type FakeResponse, FakeServer } from '../../../test/fakes/fake-server.js';
import { CREDENTIALS, MODEL, startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

async function preflight(url: string, origin: string): Promise<unknown[]> {
  const headers = { Origin: origin, 'Access-Control-Request-Method': 'POST' };
  const response = await fetch(`${url}/api/conversations`, { method: 'OPTIONS', headers });
  return [response.status, response.headers.get('access-control-allow-origin')];
}

describe('conversations of the agent server', () => {
  const server = useAgentServer(startTestAgentServer);

  it('serves /alive, /health, /ready and /server_info without a key', async () => {
    const bodies = {
      '/alive': { status: 'ok', assigned: true },
      '/health': { status: 'ok' },
      '/ready': { status: 'ok' },
    };
    for (const [route, body] of Object.entries(bodies)) {
      const response = await fetch(`${server.client.url}${route}`);
      expect([response.status, await response.json()]).toEqual([200, body]);
    }
    expect((await fetch(`${server.client.url}/server_info`)).status).toBe(200);
  });

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
    const message = { role: 'user', content: [{ type: 'text', text: 'step' }], run: false };
    const id = await server.client.start({ initial_message: message });
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

  it('gets its initial message with a later request when it was killed before the message was there', async () => {
    const conversation_id = randomUUID();
    await server.client.start({ conversation_id });
    await server.restart();
    const message = { role: 'user', content: [{ type: 'text', text: 'say hello' }] };
    const request = startRequest({ conversation_id, initial_message: message });
    const again = async () => (await server.client.post('/api/conversations', request)).status;
    expect(await Promise.all([again(), again()])).toEqual([200, 200]);
    await server.client.untilStatus(conversation_id, 'finished');
    expect(await again()).toBe(200);
    expect(await server.client.kinds(conversation_id)).toEqual(['MessageEvent', 'MessageEvent']);
  });

  it('starts to work when it was killed between its initial message and its run', async () => {
    const conversation_id = randomUUID();
    await server.client.start({ conversation_id });
    await server.client.say(conversation_id, 'say hello', false);
    await server.restart();
    const message = { role: 'user', content: [{ type: 'text', text: 'say hello' }] };
    const request = startRequest({ conversation_id, initial_message: message });
    expect((await server.client.post('/api/conversations', request)).status).toBe(200);
    await server.client.untilStatus(conversation_id, 'finished');
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
    const message = { role: 'user', content: [{ type: 'text', text: 'say again' }] };
    await server.client.start({ conversation_id, initial_message: message });
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
    expect(await server.client.kinds(id)).toEqual([
      'MessageEvent',
      'ActionEvent',
      'PauseEvent',
      'AgentErrorEvent',
    ]);
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
    expect(statuses.map((event) => jsonText(event, 'value')).slice(0, 3)).toEqual([
      'running',
      'finished',
      'running',
    ]);
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
    expect(await server.client.kinds(id)).toEqual([
      'MessageEvent',
      'ActionEvent',
      'UserRejectObservation',
      'MessageEvent',
      'ActionEvent',
    ]);
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

  it('gives secrets to tools only', async () => {
    const id = await server.client.start({
      secrets: {
        FIRST: 'first-secret',
        SECOND: { kind: 'StaticSecret', value: 'second-secret', description: 'two' },
      },
      slipway: { search_api_key: 'search-secret', language: 'German', max_budget: 2 },
    });
    await server.client.act(id, 'secrets', { secrets: { THIRD: 'third-secret' } });
    for (const name of ['FIRST', 'THIRD', 'NONE', 'OH_SESSION_API_KEYS_0']) {
      await server.client.talk(id, `env ${name}`);
    }
    await server.client.talk(id, 'settings');
    const answers = await server.client.answers(id);
    expect(answers.slice(0, 4)).toEqual(['<secret-hidden>', '<secret-hidden>', 'unset', 'unset']);
    expect(JSON.parse(String(answers[4]))).toMatchObject({
      llm: { model: 'openai/fake', apiKey: '<secret-hidden>' },
      searchApiKey: '<secret-hidden>',
      language: 'German',
      maxBudget: 2,
    });
    const info = await server.client.info(id);
    expect(jsonAt(info, 'secret_registry', 'secret_sources')).toMatchObject({
      SECOND: { kind: 'StaticSecret', description: 'two', value: '**********' },
    });
    const folder = server.folderOf(id);
    const files = await Promise.all(
      (await readdir(folder)).map((name) => readFile(path.join(folder, name), 'utf8')),
    );
    expect(files.join('')).not.toMatch(/first-secret|third-secret|search-secret|llm-key-of-a-test/);
  });

  it('changes limits, also during a run, and stores them', async () => {
    const id = await server.client.start({ max_iterations: 3, slipway: { max_budget: 2 } });
    const change = async (limits: object) => (await server.client.act(id, 'credentials', limits)).status;
    const limits = async (): Promise<unknown[]> => {
      const info = await server.client.info(id);
      return [jsonAt(info, 'max_iterations'), jsonAt(info, 'metrics', 'max_budget_per_task')];
    };
    await server.client.say(id, 'step');
    expect(await change({ max_iterations: 7, max_budget: 5.5 })).toBe(200);
    expect(await limits()).toEqual([7, 5.5]);
    await server.client.act(id, 'pause');
    await server.client.untilStatus(id, 'paused');
    expect(await change({ max_iterations: 0 })).toBe(422);
    await server.restart();
    expect(await limits()).toEqual([7, 5.5]);
    // Members that are not given stay as they are; null means no limit.
    expect(await change({ max_budget: null, ...CREDENTIALS })).toBe(200);
    expect(await limits()).toEqual([7, null]);
    const settings = String(await server.client.answerTo(id, 'settings'));
    expect(JSON.parse(settings)).toMatchObject({ maxIterations: 7, maxBudget: null });
  });

  it('refuses to run while its key is withheld, and says why and what to do', async () => {
    const interrupted = await server.client.start();
    const ended = await server.client.start();
    await server.client.talk(ended, 'say hello');
    await server.client.talk(interrupted, 'step', 'running');
    await server.restart();
    const give = async (id: string, credentials: object) =>
      await server.client.act(id, 'credentials', credentials);
    const refusal =
      /another model server .*\(openai\/fake at http:\/\/llm\.example\).* in the settings again/;
    const problems = async (id: string) => await server.client.events(id, '&kind=ConversationErrorEvent');

    for (const id of [interrupted, interrupted, ended]) {
      await give(id, { ...MODEL, llm_key_withheld: true });
      expect(await server.client.say(id, 'say hello')).toEqual({
        status: 400,
        body: { detail: expect.stringMatching(refusal) },
      });
    }
    // Work that should resume by itself sends no request that could be refused: the log gets the reason, once.
    expect(await problems(interrupted)).toMatchObject([
      { code: 'LlmKeyWithheld', detail: expect.stringMatching(refusal) },
    ]);
    expect(await problems(ended)).toEqual([]);

    await give(interrupted, CREDENTIALS);
    await server.client.talk(interrupted, 'say hello');
  });

  it('continues with the key it has when another one is withheld, and without one where none is needed', async () => {
    const keyless = await server.client.start({ agent: { kind: 'Agent', llm: { model: 'openai/fake' } } });
    for (const [id, apiKey] of [
      [await server.client.start(), '<secret-hidden>'],
      [keyless, null],
    ] as const) {
      await server.client.act(id, 'credentials', { llm_key_withheld: true });
      const settings = String(await server.client.answerTo(id, 'settings'));
      expect(JSON.parse(settings)).toMatchObject({ llm: { apiKey } });
    }
  });

  it('changes policies and rejects those that it does not support', async () => {
    const id = await server.client.start();
    const policy = { kind: 'ConfirmRisky', threshold: 'HIGH', confirm_unknown: true };
    await server.client.act(id, 'confirmation_policy', { policy });
    const analyzer = { security_analyzer: { kind: 'LLMSecurityAnalyzer' } };
    await server.client.act(id, 'security_analyzer', analyzer);
    expect(await server.client.info(id)).toMatchObject({
      confirmation_policy: policy,
      ...analyzer,
    });
    const set = async (security_analyzer: unknown) =>
      (await server.client.act(id, 'security_analyzer', { security_analyzer })).status;
    const rails = { kind: 'PolicyRailSecurityAnalyzer' };
    const patterns = {
      kind: 'PatternSecurityAnalyzer',
      high_patterns: [['deploy', 'Deploys', 'own.deploy']],
    };
    const several = {
      kind: 'EnsembleSecurityAnalyzer',
      analyzers: [rails, patterns],
      propagate_unknown: true,
    };
    for (const known of [rails, patterns, several]) {
      expect(await set(known)).toBe(200);
      expect(await server.client.info(id)).toMatchObject({ security_analyzer: known });
    }
    const garbled = { ...patterns, high_patterns: [['(', 'x', 'y']] };
    const nested = { kind: 'EnsembleSecurityAnalyzer', analyzers: [several] };
    const none = { kind: 'EnsembleSecurityAnalyzer', analyzers: [] };
    for (const refused of [{ kind: 'GraySwanAnalyzer' }, garbled, nested, none]) {
      expect(await set(refused)).toBe(422);
    }
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
    const [first, second, third] = [
      await small.client.start(),
      await small.client.start(),
      await small.client.start(),
    ];
    await small.client.say(first, 'step');
    await small.client.say(second, 'say second');
    await small.client.say(third, 'say third');
    expect(await small.client.status(third)).toBe('running');
    await small.client.act(second, 'pause');
    await small.client.untilStatus(second, 'paused');
    expect(await small.client.answers(third)).toEqual([]);
    await small.client.act(first, 'pause');
    await small.client.untilStatus(third, 'finished');
    expect(await small.client.answers(third)).toEqual(['third']);
    await small.stop();
  });

  it('starts no more runs when it is stopped', async () => {
    const small = await startTestAgentServer({ maxConcurrentRuns: 1 });
    const working = await small.client.start();
    await small.client.say(working, 'step');
    const waiting = await Promise.all(Array.from({ length: 2 }, () => small.client.start()));
    await Promise.all(waiting.map((id) => small.client.say(id, 'say something')));
    await small.restart();

    for (const id of [working, ...waiting]) {
      expect(await small.client.info(id)).toMatchObject({
        execution_status: 'paused',
        agent_state: { was_running: true },
      });
    }
    await small.stop();
  });

  it('forgets that it was running when it is paused after a restart', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'step', 'running');
    await server.restart();

    await server.client.act(id, 'pause');

    const path = `/api/conversations/${id}`;
    expect(await server.client.get(path)).toMatchObject({ execution_status: 'paused', agent_state: {} });
    expect((await server.client.kinds(id)).at(-1)).toBe('PauseEvent');
    await server.restart();
    expect(await server.client.get(path)).toMatchObject({ execution_status: 'paused', agent_state: {} });
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
    expect(await server.client.info(id)).toMatchObject({
      execution_status: 'paused',
      agent_state: {},
    });
  });

  it('looks secrets up before each run, and keeps the last value of one that cannot be fetched', async () => {
    const answers: FakeResponse[] = [
      { body: 'first-value', headers: { 'content-type': 'text/plain' } },
      { body: '"second-value"', headers: { 'content-type': 'application/json' } },
      { status: 503 },
    ];
    const keeper = await FakeServer.start(() => answers.shift() ?? { status: 500 });
    const id = await server.client.start({
      secrets: {
        LOOKED_UP: {
          kind: 'LookupSecret',
          url: `${keeper.origin}/secret?of=me`,
          headers: { 'X-Key': 'key-of-the-keeper' },
        },
      },
    });
    for (const length of ['11', '12', '12']) {
      expect(await server.client.answerTo(id, 'length LOOKED_UP')).toBe(length);
    }
    expect(await server.client.answerTo(id, 'say first-value second-value key-of-the-keeper')).toBe(
      '<secret-hidden> <secret-hidden> <secret-hidden>',
    );
    expect(keeper.requests[0]).toMatchObject({ headers: { 'x-key': 'key-of-the-keeper' } });
    expect(JSON.stringify(await server.client.info(id))).not.toContain('of=me');
    await keeper.close();
  });

  it('follows no keeper of secrets to another server, and reads no endless secret', async () => {
    const stranger = await FakeServer.start(() => ({ body: 'x' }));
    const answers: FakeResponse[] = [
      { status: 307, headers: { location: `${stranger.origin}/secret` } },
      { body: 'x'.repeat(200_000), headers: { 'content-type': 'text/plain' } },
    ];
    const keeper = await FakeServer.start(() => answers.shift() ?? { status: 500 });
    const source = { kind: 'LookupSecret', url: keeper.origin, headers: { 'X-Key': 'key-of-the-keeper' } };
    const id = await server.client.start({ secrets: { LOOKED_UP: source } });
    expect(await server.client.answerTo(id, 'length LOOKED_UP')).toBe('undefined');
    expect(await server.client.answerTo(id, 'length LOOKED_UP')).toBe('undefined');
    expect(stranger.requests).toEqual([]);
    await Promise.all([keeper.close(), stranger.close()]);
  });

  it('counts what the model cost, and steps since the last message', async () => {
    const id = await server.client.start();
    for (const costUsd of [0.25, 0.5]) {
      const totals = String(await server.client.answerTo(id, 'spend'));
      expect(JSON.parse(totals)).toEqual({ iterations: 1, costUsd });
    }
    expect(await server.client.info(id)).toMatchObject({
      metrics: {
        accumulated_cost: 0.5,
        cost_source: 'catalogue',
        accumulated_token_usage: { prompt_tokens: 20, completion_tokens: 10 },
      },
    });
  });

  it('titles, lists, counts and deletes', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'say something about the build', false);
    const title = await server.client.act(id, 'generate_title', { max_length: 20 });
    expect(title.body).toEqual({ title: 'say something…' });
    await server.client.send('PATCH', `/api/conversations/${id}`, { title: 'Mine' });
    const unknown = randomUUID();
    const found = await server.client.get(`/api/conversations?ids=${id.replaceAll('-', '')}&ids=${unknown}`);
    expect(found).toMatchObject([{ id, title: 'Mine' }, null]);
    const first = await server.client.get('/api/conversations/search?limit=1');
    expect(jsonList(first, 'items')).toMatchObject([{ id }]);
    const next = String(jsonAt(first, 'next_page_id'));
    const second = await server.client.get(`/api/conversations/search?limit=1&page_id=${next}`);
    expect(jsonList(second, 'items')).toMatchObject([{ id: next }]);
    const count = Number(await server.client.get('/api/conversations/count?status=idle'));
    expect((await server.client.send('DELETE', `/api/conversations/${id}`)).body).toEqual({ success: true });
    expect(await server.client.get('/api/conversations/count?status=idle')).toBe(count - 1);
    expect((await server.client.send('GET', `/api/conversations/${id}`)).status).toBe(404);
    expect(await readdir(path.join(server.folder, 'conversations'))).not.toContain(id.replaceAll('-', ''));
  });

  it.each([
    ['POST', '/run'],
    ['POST', '/pause'],
    ['GET', '/events/search'],
    ['DELETE', ''],
  ])('answers 404 to %s %s of an unknown conversation', async (method, route) => {
    for (const id of [randomUUID(), 'nonsense']) {
      expect(await server.client.send(method, `/api/conversations/${id}${route}`)).toEqual({
        status: 404,
        body: { detail: 'Conversation not found' },
      });
    }
  });

  it('names every rule that a request breaks, without the values', async () => {
    const request = startRequest({
      secrets: { 'bad name': 'a-secret' },
      max_iterations: 0,
      workspace: undefined,
    });
    const { status, body } = await server.client.post('/api/conversations', request);
    expect(status).toBe(422);
    const problems = jsonList(body, 'detail');
    expect(problems.map((problem) => jsonAt(problem, 'loc'))).toEqual([
      ['body', 'workspace'],
      ['body', 'max_iterations'],
      ['body', 'secrets', 'bad name'],
    ]);
    expect(problems[0]).toEqual({ type: 'missing', loc: ['body', 'workspace'], msg: 'Field required' });
    expect(JSON.stringify(body)).not.toContain('a-secret');
  });

  it('rejects images that no model accepts', async () => {
    const id = await server.client.start();
    const send = async (url: string) =>
      await server.client.act(id, 'events', {
        content: [{ type: 'image', image_urls: [url] }],
      });
    for (const url of ['nonsense', 'file:///etc/passwd', 'http://']) {
      expect(await send(url)).toMatchObject({
        status: 422,
        body: { detail: [{ loc: ['body', 'content', 0, 'image_urls', 0] }] },
      });
    }
    expect(await send('data:image/png;base64,iVBORw0KGgo=')).toMatchObject({ status: 200 });
  });

  it('pages and filters events', async () => {
    const id = await server.client.start();
    for (const text of ['say one', 'say Two', 'say three']) {
      await server.client.talk(id, text);
    }
    const all = await server.client.events(id);
    const ids = all.map((event) => jsonAt(event, 'id'));
    const paged: unknown[] = [];
    for (let page: string | null = ''; page !== null;) {
      const answer = await server.client.get(
        `/api/conversations/${id}/events/search?limit=2&page_id=${page}`,
      );
      paged.push(...jsonList(answer, 'items'));
      page = jsonText(answer, 'next_page_id');
    }
    expect(paged).toEqual(all);
    const reversed = await server.client.events(id, '&sort_order=TIMESTAMP_DESC');
    expect(reversed).toEqual(all.toReversed());
    const middle = String(jsonAt(all[3], 'timestamp'));
    expect(await server.client.events(id, `&timestamp__gte=${middle}`)).toEqual(all.slice(3));
    expect(await server.client.events(id, `&timestamp__lt=${middle}Z`)).toEqual(all.slice(0, 3));
    expect(await server.client.events(id, '&kind=openhands.sdk.event.MessageEvent&body=TWO')).toHaveLength(2);
    expect(await server.client.get(`/api/conversations/${id}/events/count?source=user`)).toBe(3);
    expect(await server.client.get(`/api/conversations/${id}/events/${String(ids[0])}`)).toEqual(all[0]);
    expect(await server.client.get(`/api/conversations/${id}/events?ids=${String(ids[1])}&ids=x`)).toEqual([
      all[1],
      null,
    ]);
    expect((await server.client.send('GET', `/api/conversations/${id}/events/search?limit=101`)).status).toBe(
      422,
    );
    expect(
      (await server.client.send('GET', `/api/conversations/${id}/events/search?timestamp__lt=x`)).status,
    ).toBe(422);
  });
});
