import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { unzipSync } from 'fflate';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { CREDENTIALS } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

const server = useAgentServer(startTestAgentServer);

async function talk(...messages: string[]): Promise<string> {
  const id = await server.client.start({ tags: { purpose: 'test' } });
  await goOn(id, ...messages);
  return id;
}

async function goOn(id: string, ...messages: string[]): Promise<void> {
  for (const message of messages) {
    await server.client.talk(id, message);
  }
}

const fork = async (id: string, body?: Record<string, unknown>) => await server.client.act(id, 'fork', body);
const navigate = async (id: string, eventId: string | null) =>
  await server.client.act(id, 'navigate', { event_id: eventId });
const firstAnswer = async (id: string): Promise<string> =>
  jsonText((await server.client.events(id, '&kind=MessageEvent&source=agent'))[0], 'id') ?? '';

describe('a fork', () => {
  it('knows the history, and goes on by itself, with the credentials of its source', async () => {
    const id = await talk('say one', 'say two');
    const wanted = randomUUID();
    const { status, body } = await fork(id, { id: wanted, title: 'Copy', tags: { copied: 'yes' } });
    expect(status).toBe(201);
    const tags = { copied: 'yes' };
    expect(body).toMatchObject({ id: wanted, title: 'Copy', tags, execution_status: 'idle' });
    expect(await server.client.events(wanted)).toEqual(await server.client.events(id));
    await goOn(wanted, 'say three');
    expect(await server.client.answers(wanted)).toEqual(['one', 'two', 'three']);
    expect(await server.client.answers(id)).toEqual(['one', 'two']);

    await server.restart();
    expect(await server.client.answers(wanted)).toEqual(['one', 'two', 'three']);
    expect(await server.client.info(wanted)).toMatchObject({ tags });
    expect(await server.client.info(id)).toMatchObject({ tags: { purpose: 'test' } });
  });

  it('ends at an event, and counts usage anew unless it is told not to', async () => {
    const id = await talk('spend', 'say two');
    const short = await fork(id, { from_event_id: await firstAnswer(id), reset_metrics: false });
    const copy = jsonText(short.body, 'id') ?? '';
    expect(await server.client.answers(copy)).toHaveLength(1);
    expect(short.body).toMatchObject({ metrics: { accumulated_cost: 0.25 } });
    expect((await fork(id)).body).toMatchObject({ metrics: { accumulated_cost: 0 }, title: null, tags: {} });
  });

  it('of a running conversation closes the call that runs', async () => {
    const id = await server.client.start();
    await server.client.say(id, 'call x');
    await until(async () => (await server.client.kinds(id)).includes('ActionEvent'));
    const { body } = await fork(id);
    const copy = jsonText(body, 'id') ?? '';
    const [error] = await server.client.events(copy, '&kind=AgentErrorEvent');
    const [action] = await server.client.events(id, '&kind=ActionEvent');
    expect(jsonText(error, 'tool_call_id')).toBe(jsonText(action, 'tool_call_id'));
    await server.client.act(id, 'interrupt');
  });

  it('is refused without an event, and with an id that is taken', async () => {
    const id = await talk('say one');
    expect((await fork(id, { from_event_id: randomUUID() })).status).toBe(404);
    expect((await fork(id, { id })).status).toBe(409);
    expect((await fork(id, { id: 'x' })).status).toBe(422);
    expect((await fork(id, { tags: { 'A b': 'x' } })).status).toBe(422);
  });
});

describe('navigation', () => {
  it('goes on from an event, and leaves the log as it is', async () => {
    const id = await talk('say one', 'say two');
    const first = await firstAnswer(id);
    const before = await server.client.events(id);
    expect((await navigate(id, first)).body).toMatchObject({ execution_status: 'idle' });
    expect((await server.client.events(id)).slice(0, before.length)).toEqual(before);

    await goOn(id, 'say three');
    const { body } = await fork(id);
    expect(await server.client.answers(jsonText(body, 'id') ?? '')).toEqual(['one', 'three']);
    expect(await server.client.answers(id)).toEqual(['one', 'two', 'three']);
    expect(await server.client.get(`/api/conversations/${id}/agent_final_response`)).toEqual({
      response: 'three',
    });

    await server.restart();
    await server.client.act(id, 'credentials', CREDENTIALS);
    await navigate(id, null);
    expect((await server.client.act(id, 'run')).status).toBe(400);
    await goOn(id, 'say four');
    const again = await fork(id);
    expect(await server.client.answers(jsonText(again.body, 'id') ?? '')).toEqual(['four']);
  });

  it('is refused while the agent runs, and to events that there are not', async () => {
    const id = await talk('say one');
    expect((await navigate(id, randomUUID())).status).toBe(404);
    await server.client.say(id, 'call x');
    expect((await navigate(id, await firstAnswer(id))).status).toBe(409);
    await server.client.act(id, 'interrupt');
  });

  it('takes what waited for confirmation out of the history', async () => {
    const id = await talk('say one');
    await server.client.talk(id, 'ask x', 'waiting_for_confirmation');
    await navigate(id, await firstAnswer(id));
    expect(await server.client.status(id)).toBe('idle');
  });
});

it('the trajectory of a conversation is an archive of what clients see of it', async () => {
  const id = await talk('say one');
  const response = await server.client.fetch(`/api/file/download-trajectory/${id}`);
  const files = unzipSync(new Uint8Array(await response.arrayBuffer()));
  const [meta, ...events] = Object.values(files).map((bytes): unknown =>
    JSON.parse(Buffer.from(bytes).toString('utf8')),
  );
  expect(jsonAt(meta, 'id')).toBe(id);
  expect(events).toEqual(await server.client.events(id));
  expect(JSON.stringify(meta)).not.toContain('llm-key-of-a-test');
  const none = await server.client.send('GET', `/api/file/download-trajectory/${randomUUID()}`);
  expect(none.status).toBe(404);
});
