import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp();
let agent: FakeConversationServer & { address: string };
let id: string;

beforeEach(async () => {
  agent = await FakeConversationServer.start();
  id = randomUUID();
  agent.open(id);
  const sandbox = await insertRunningSandbox(service, service.user.id, agent);
  await openLog(service, service.user.id, sandbox, id);
  // With a socket, the log is looked at every fifteen seconds only.
  await until(() => agent.watchers === 1);
  agent.socketsWork = false;
});

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  await agent.close();
});

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = { 'X-Session-API-Key': agent.key },
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${service.url}/api/v1/webhooks/${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

async function count(): Promise<unknown> {
  const response = await fetch(`${service.url}/api/v1/conversation/${id}/events/count`, {
    headers: service.user.headers,
  });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return await response.json();
}

const ACCEPTED = { status: 200, body: { success: true } };

describe('webhooks of agent servers', () => {
  it('make the service read the log instead of trusting the body', async () => {
    agent.append(id);
    expect(await post(`events/${id.replaceAll('-', '')}`, [{ id: 'never happened' }])).toEqual(ACCEPTED);
    await until(async () => (await count()) === 1);
    agent.append(id);
    expect(await post('conversations', { id, execution_status: 'running' })).toEqual(ACCEPTED);
    await until(async () => (await count()) === 2);
  });

  it('are merged when there are many, and the last one counts', async () => {
    const before = agent.reads.length;
    // A sandbox has a share of the requests under way.
    for (let wave = 0; wave < 3; wave += 1) {
      const answers = await Promise.all(Array.from({ length: 100 }, () => post(`events/${id}`, [])));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    }
    agent.append(id);
    expect(await post(`events/${id}`, [])).toEqual(ACCEPTED);
    await until(async () => (await count()) === 1);
    expect(agent.reads.length - before).toBeLessThan(150);
  });

  it('accept conversations that the service or the sandbox does not know, and tell them from no others', async () => {
    const unknown = randomUUID();
    const key = randomUUID();
    await insertRunningSandbox(service, service.user.id, { address: agent.address, key });
    for (const [of, headers] of [
      [unknown, undefined],
      [id, { 'X-Session-API-Key': key }],
    ] as const) {
      expect(await post(`events/${of}`, [], headers)).toEqual(ACCEPTED);
      expect(await post('conversations', { id: of }, headers)).toEqual(ACCEPTED);
    }
  });

  it('know no conversation with a garbled id', async () => {
    expect(await post('events/garbage', [])).toMatchObject({ status: 404 });
    expect(await post('conversations', { id: 'garbage' })).toMatchObject({ status: 404 });
  });

  it('accept large bodies with any text in them', async () => {
    expect(await post(`events/${id}`, [{ text: 'x'.repeat(20_000_000), nul: '\0\uD800' }])).toEqual(ACCEPTED);
  });

  const BAD: [string, unknown, string[], string][] = [
    ['conversations', {}, ['body', 'id'], 'missing'],
    ['conversations', [], ['body', 'id'], 'missing'],
    ['conversations', '{', ['body'], 'json_invalid'],
    ['conversations', { id: 5 }, ['body', 'id'], 'missing'],
    ['events', {}, ['body'], 'list_type'],
    ['events', '[', ['body'], 'json_invalid'],
  ];

  it('refuse bodies that are none', async () => {
    for (const [kind, body, loc, type] of BAD) {
      const answer = await post(kind === 'events' ? `events/${id}` : kind, body);
      expect([kind, body, answer]).toMatchObject([
        kind,
        body,
        { status: 422, body: { detail: [{ loc, type }] } },
      ]);
    }
  });

  it('refuse bodies that are not JSON, or too large', async () => {
    const headers = { 'Content-Type': 'text/plain', 'X-Session-API-Key': agent.key };
    expect(await post(`events/${id}`, '[]', headers)).toMatchObject({ status: 415 });
    expect(await post(`events/${id}`, `["${'x'.repeat(34_000_000)}"]`)).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large', detail: 'The request body may have at most 32 MiB.' },
    });
  });
});
