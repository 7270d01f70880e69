import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { actionEvent } from '../fakes/sample-events.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';

const CONVERSATIONS = '/api/v1/app-conversations';
const SCHEMA = { type: 'object', properties: { passed: { type: 'boolean' } }, required: ['passed'] };

let app: TestApp;
let rows: ConversationRows;
let user: TestUser;

beforeAll(async () => {
  app = await createTestApp();
  rows = new ConversationRows(app);
});

beforeEach(async () => {
  user = await app.createUser();
});

afterAll(async () => {
  await app.close();
});

function get(path: string, who = user): request.Test {
  return request(app.url).get(`${CONVERSATIONS}${path}`).set(who.headers);
}

function patch(id: string, body: object, who = user): request.Test {
  return request(app.url).patch(`${CONVERSATIONS}/${id}`).set(who.headers).send(body);
}

function start(body: object): request.Test {
  return request(app.url).post(CONVERSATIONS).set(user.headers).send(body);
}

describe('tags and metadata', () => {
  it('are kept with a conversation, and searched by', async () => {
    const { hex: one } = await rows.conversation(user.id, { tags: { team: 'checkout', state: 'open' } });
    const { hex: other } = await rows.conversation(user.id, { tags: { team: 'search', link: 'a:b' } });
    const stranger = await app.createUser();
    await rows.conversation(stranger.id, { tags: { team: 'checkout' } });

    const found = async (query: string): Promise<string[]> =>
      (await get(`/search?${query}`).expect(200)).body.items.map(({ id }: { id: string }) => id);
    expect(await found('tag=team:checkout')).toEqual([one]);
    expect(await found('tag=team:checkout&tag=state:open')).toEqual([one]);
    expect(await found('tag=team:checkout&tag=state:done')).toEqual([]);
    expect(await found('tag=link:a:b')).toEqual([other]);
    expect((await get('/count?tag=team:search').expect(200)).body).toBe(1);
    await get('/search?tag=team').expect(422);
  });

  it('are replaced as a whole, and cleared by null', async () => {
    const { hex } = await rows.conversation(user.id, { tags: { team: 'a' } });
    const { body } = await patch(hex, { tags: { state: 'done' }, metadata: { ticket: { id: 7 } } }).expect(
      200,
    );
    expect(body).toMatchObject({ tags: { state: 'done' }, metadata: { ticket: { id: 7 } } });
    expect((await patch(hex, { title: 'Other' }).expect(200)).body).toMatchObject({
      tags: { state: 'done' },
    });
    const cleared = await patch(hex, { tags: null, metadata: null }).expect(200);
    expect([cleared.body.tags, cleared.body.metadata]).toEqual([{}, {}]);
    await patch(hex, { tags: {} }, await app.createUser()).expect(404);
  });

  it('come with the request of a start', async () => {
    const asked = { tags: { team: 'a' }, metadata: { n: [1] }, result_schema: SCHEMA, secret_names: ['X'] };
    const { body } = await start(asked).expect(200);
    expect(body.request).toMatchObject(asked);
  });

  it.each([
    [{ tags: { 'no spaces': 'a' } }, ['body', 'tags', 'no spaces']],
    [{ tags: { team: 5 } }, ['body', 'tags', 'team']],
    [{ tags: { team: 'x'.repeat(257) } }, ['body', 'tags', 'team']],
    [{ tags: Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`t${n}`, ''])) }, ['body', 'tags']],
    [{ metadata: [] }, ['body', 'metadata']],
    [{ metadata: { text: 'x'.repeat(16_384) } }, ['body', 'metadata']],
    [{ result_schema: 'object' }, ['body', 'result_schema']],
    [{ result_schema: { description: 'x'.repeat(32_768) } }, ['body', 'result_schema']],
    [{ secret_names: 'A' }, ['body', 'secret_names']],
  ])('refuses %#', async (body, loc) => {
    const refused = await start(body).expect(422);
    expect(refused.body.detail[0].loc).toEqual(loc);
  });
});

describe('the result of a conversation', () => {
  const finish = (id: string, args: object) =>
    actionEvent(id, id, {
      tool_name: 'finish',
      action: { kind: 'FinishAction', message: 'Done.' },
      tool_call: { id, name: 'finish', arguments: JSON.stringify(args), origin: 'completion' },
    });

  it.each([
    ['the last one', SCHEMA, [{ passed: false }, { passed: true }], { passed: true }],
    ['none before the end', SCHEMA, [], null],
    ['none that nobody asked for', null, [{ passed: true }], null],
  ])('is %s', async (_, resultSchema, results, expected) => {
    const { id, hex } = await rows.conversation(user.id, { resultSchema });
    const events = results.map((result, index) => finish(`call${index}`, { message: 'Done.', result }));
    await app.app.get(EventStore).store(id, events);
    expect((await get(`?ids=${hex}`).expect(200)).body).toMatchObject([{ result: expected }]);
  });

  it('is not what a refused call has', async () => {
    const { id, hex } = await rows.conversation(user.id, { resultSchema: SCHEMA });
    const refused = { ...finish('call', { message: 'Done.', result: { passed: 'yes' } }), action: null };
    await app.app.get(EventStore).store(id, [refused]);
    expect((await get(`?ids=${hex}`).expect(200)).body).toMatchObject([{ result: null }]);
  });
});
