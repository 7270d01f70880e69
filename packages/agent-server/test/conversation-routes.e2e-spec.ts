import { describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { type FakeResponse, FakeServer } from '../../../test/fakes/fake-server.js';
import { CREDENTIALS, MODEL, startRequest } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

describe('what conversations of the agent server are given and asked', () => {
  const server = useAgentServer(startTestAgentServer);

  it('gives secrets to tools only', async () => {
    const SECOND = { kind: 'StaticSecret', value: 'second-secret', description: 'two' };
    const id = await server.client.start({
      secrets: { FIRST: 'first-secret', SECOND },
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
    expect(await server.client.info(id)).toMatchObject({ confirmation_policy: policy, ...analyzer });
    const set = async (security_analyzer: unknown) =>
      (await server.client.act(id, 'security_analyzer', { security_analyzer })).status;
    const rails = { kind: 'PolicyRailSecurityAnalyzer' };
    const high_patterns = [['deploy', 'Deploys', 'own.deploy']];
    const patterns = { kind: 'PatternSecurityAnalyzer', high_patterns };
    const ensemble = (...analyzers: object[]) => ({ kind: 'EnsembleSecurityAnalyzer', analyzers });
    const several = { ...ensemble(rails, patterns), propagate_unknown: true };
    for (const known of [rails, patterns, several]) {
      expect(await set(known)).toBe(200);
      expect(await server.client.info(id)).toMatchObject({ security_analyzer: known });
    }
    const garbled = { ...patterns, high_patterns: [['(', 'x', 'y']] };
    for (const refused of [{ kind: 'GraySwanAnalyzer' }, garbled, ensemble(several), ensemble()]) {
      expect(await set(refused)).toBe(422);
    }
  });

  it('looks secrets up before each run, and keeps the last value of one that cannot be fetched', async () => {
    const answers: FakeResponse[] = [
      { body: 'first-value', headers: { 'content-type': 'text/plain' } },
      { body: '"second-value"', headers: { 'content-type': 'application/json' } },
      { status: 503 },
    ];
    const keeper = await FakeServer.start(() => answers.shift() ?? { status: 500 });
    const source = { url: `${keeper.origin}/secret?of=me`, headers: { 'X-Key': 'key-of-the-keeper' } };
    const id = await server.client.start({ secrets: { LOOKED_UP: { kind: 'LookupSecret', ...source } } });
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
    const accumulated_token_usage = { prompt_tokens: 20, completion_tokens: 10 };
    expect(jsonAt(await server.client.info(id), 'metrics')).toMatchObject({
      accumulated_cost: 0.5,
      cost_source: 'catalogue',
      accumulated_token_usage,
    });
  });

  it('titles, lists, counts and deletes', async () => {
    const earlier = await server.client.start();
    await server.client.talk(earlier, 'say hello');
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
    expect(jsonAt(first, 'next_page_id')).toBe(earlier);
    const second = await server.client.get(`/api/conversations/search?limit=1&page_id=${earlier}`);
    expect(jsonList(second, 'items')).toMatchObject([{ id: earlier }]);
    const count = Number(await server.client.get('/api/conversations/count?status=idle'));
    expect((await server.client.send('DELETE', `/api/conversations/${id}`)).body).toEqual({ success: true });
    expect(await server.client.get('/api/conversations/count?status=idle')).toBe(count - 1);
    expect((await server.client.send('GET', `/api/conversations/${id}`)).status).toBe(404);
    expect(await readdir(path.join(server.folder, 'conversations'))).not.toContain(id.replaceAll('-', ''));
  });

  it('names every rule that a request breaks, without the values', async () => {
    const secrets = { 'bad name': 'a-secret' };
    const request = startRequest({ secrets, max_iterations: 0, workspace: undefined });
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
      await server.client.act(id, 'events', { content: [{ type: 'image', image_urls: [url] }] });
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
    const ask = async (query: string) =>
      await server.client.send('GET', `/api/conversations/${id}/events${query}`);
    const paged: unknown[] = [];
    for (let page: string | null = ''; page !== null;) {
      const { body } = await ask(`/search?limit=2&page_id=${page}`);
      paged.push(...jsonList(body, 'items'));
      page = jsonText(body, 'next_page_id');
    }
    expect(paged).toEqual(all);
    expect(await server.client.events(id, '&sort_order=TIMESTAMP_DESC')).toEqual(all.toReversed());
    const middle = String(jsonAt(all[3], 'timestamp'));
    expect(await server.client.events(id, `&timestamp__gte=${middle}`)).toEqual(all.slice(3));
    expect(await server.client.events(id, `&timestamp__lt=${middle}Z`)).toEqual(all.slice(0, 3));
    expect(await server.client.events(id, '&kind=openhands.sdk.event.MessageEvent&body=TWO')).toHaveLength(2);
    expect((await ask('/count?source=user')).body).toBe(3);
    expect((await ask(`/${String(ids[0])}`)).body).toEqual(all[0]);
    expect((await ask(`?ids=${String(ids[1])}&ids=x`)).body).toEqual([all[1], null]);
    for (const wrong of ['limit=101', 'timestamp__lt=x']) {
      expect((await ask(`/search?${wrong}`)).status).toBe(422);
    }
  });
});
