import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Test } from 'supertest';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import type { Visibility } from '../../src/auth/access.js';
import type { Scope } from '../../src/common/scopes.js';
import { KeptChangesRepository } from '../../src/v1/app-conversations/kept-changes/kept-changes.repository.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { useTestApp } from '../support/use-test-app.js';

/** Nothing listens there: a request that gets as far is answered with 502. */
const AGENT_SERVER = 'http://127.0.0.1:9';
const LIST = '/api/v1/app-conversations';

const app = useTestApp();

type Who = 'owner' | 'member' | 'viewer' | 'admin';
type Method = 'get' | 'post' | 'patch' | 'delete';

let users: Record<Who, TestUser>;
let shared: string;
let hidden: string;
let sandbox: string;

beforeAll(async () => {
  users = {
    owner: app.user,
    member: await app.createUser(),
    viewer: await app.createUser(),
    admin: app.admin,
  };
  await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [users.viewer.id]);
  sandbox = (await new ConversationRows(app).sandbox(users.owner.id, { address: AGENT_SERVER })).id;
  shared = await converse('organization');
  hidden = await converse('private');
});

async function converse(visibility: Visibility, owner: TestUser = users.owner): Promise<string> {
  const members = { sandboxId: sandbox, visibility, title: `${visibility} one` };
  const { id, hex } = await new ConversationRows(app).conversation(owner.id, members, FOLLOWED_ELSEWHERE);
  await app.app.get(EventStore, { strict: false }).store(id, [messageEvent(randomUUID(), 'user', 'hello')]);
  const file = { status: 'UPDATED', path: 'src/a.ts', diff: { original: 'a', modified: 'b' } } as const;
  await app.app
    .get(KeptChangesRepository, { strict: false })
    .keep(id, new Date('2026-01-31T12:00:00Z'), { files: [file], paths: ['src/a.ts'] });
  return hex;
}

function ask(who: Who, method: Method, path: string): Test {
  return app.as(users[who]).ask(method, path);
}

async function listed(who: Who, query = ''): Promise<string[]> {
  const { body } = await ask(who, 'get', `${LIST}/search?${query}`).expect(200);
  return body.items.map(({ id }: { id: string }) => id);
}

async function auditOf(id: string): Promise<object[]> {
  return app.dataSource.query(
    `SELECT action, actor_user_id AS actor, owner_user_id AS owner, outcome, details FROM audit_entries
     WHERE resource_id = $1 ORDER BY at`,
    [id],
  );
}

const READS: [string, (id: string) => string][] = [
  ['events', (id) => `/api/v1/conversation/${id}/events/search`],
  ['number of events', (id) => `/api/v1/conversation/${id}/events/count`],
  ['archive', (id) => `${LIST}/${id}/download`],
  ['kept changes', (id) => `${LIST}/${id}/git/changes?path=.`],
  ['kept files', (id) => `${LIST}/${id}/files`],
  ['kept difference', (id) => `${LIST}/${id}/git/diff?path=src/a.ts`],
];
const MESSAGE = { content: [{ text: 'go on' }] };
/** What reaches the sandbox, or changes the conversation. */
const OWNERS: [Method, (id: string) => string, object?][] = [
  ['patch', (id) => `${LIST}/${id}`, { title: 'mine' }],
  ['delete', (id) => `${LIST}/${id}`],
  ['get', (id) => `${LIST}/${id}/file?file_path=README.md`],
  ['get', (id) => `${LIST}/${id}/skills`],
  ['get', (id) => `${LIST}/${id}/hooks`],
  ['post', (id) => `${LIST}/${id}/pull-request`],
  ['post', (id) => `${LIST}/${id}/switch_profile`, { profile_name: 'fast' }],
  ['post', (id) => `${LIST}/${id}/switch_acp_model`, { model: 'm' }],
  ['post', (id) => `/api/v1/conversations/${id}/pending-messages`, MESSAGE],
];
/** What administrators may do, too. */
const STEERING: [Method, (id: string) => string, object?][] = [
  ['post', (id) => `${LIST}/${id}/send-message?resume=false`, MESSAGE],
  ['post', (id) => `${LIST}/${id}/respond-to-confirmation`, { accept: true }],
  ['post', (id) => `${LIST}/${id}/pause`],
  ['post', (id) => `${LIST}/${id}/run`],
];

describe('a shared conversation', () => {
  it.each(['member', 'viewer', 'admin'] as const)(
    'is read by the routes of the own ones: %s',
    async (who) => {
      const { body } = await ask(who, 'get', `${LIST}?ids=${shared}`).expect(200);
      expect(body).toMatchObject([
        {
          id: shared,
          visibility: 'organization',
          created_by_user_id: users.owner.id,
          created_by_email: expect.stringContaining('@'),
          sandbox_status: 'RUNNING',
          session_api_key: null,
        },
      ]);
      for (const [name, path] of READS) {
        const { status } = await ask(who, 'get', path(shared));
        expect([name, status]).toEqual([name, 200]);
      }
      const ofOlderClients = `/api/v1/events/count?conversation_id__eq=`;
      expect((await ask(who, 'get', `${ofOlderClients}${shared}`).expect(200)).body).toBe(1);
      const ofHidden = await ask(who, 'get', `${ofOlderClients}${hidden}`).expect(200);
      expect(ofHidden.body).toBe(who === 'admin' ? 1 : 0);
      const { body: changes } = await ask(who, 'get', `${LIST}/${shared}/git/changes?path=.&resume=true`);
      // A resume would start the sandbox of another user.
      expect(changes).toEqual([expect.objectContaining({ path: 'src/a.ts' })]);
    },
  );

  it.each(['member', 'admin'] as const)('is not changed, nor its sandbox reached, by a %s', async (who) => {
    for (const [method, path, body] of OWNERS) {
      const answer = await ask(who, method, path(shared)).send(body);
      expect([path(shared), answer.status, answer.body.code]).toEqual([path(shared), 403, 'forbidden']);
      expect(answer.body.detail).toContain('You may read this conversation.');
    }
  });

  describe('is followed', () => {
    const stream = async (who: TestUser, hex: string): Promise<EventSource> => {
      const path = `/api/v1/conversation/${hex}/events/stream`;
      return EventSource.connect(`${replica.url}${path}`, who.headers);
    };
    const share = (hex: string, visibility: Visibility): Test =>
      ask('owner', 'patch', `${LIST}/${hex}`).send({ visibility }).expect(200);
    let replica: TestApp;
    beforeAll(async () => {
      replica = await createTestApp({}, app.databaseUrl);
    });
    afterAll(() => replica.close());

    it('by its readers as it happens, until it is shared no longer', async () => {
      const { id, hex } = await new ConversationRows(app).conversation(
        users.owner.id,
        { visibility: 'organization' },
        FOLLOWED_ELSEWHERE,
      );
      const streams = await Promise.all(
        [users.owner, users.member, users.viewer, users.admin].map((who) => stream(who, hex)),
      );
      const event = messageEvent(randomUUID(), 'user', 'while they listen');
      await app.app.get(EventStore, { strict: false }).store(id, [event]);
      await Promise.all(streams.map((each) => each.untilCount(1)));
      expect(streams.map((each) => each.events[0]?.data)).toEqual(streams.map(() => event));
      await share(hex, 'private');
      const [ofOwner, ofMember, ofViewer, ofAdmin] = streams;
      await Promise.all([ofMember?.untilEnded(), ofViewer?.untilEnded()]);
      expect([ofOwner?.ended, ofAdmin?.ended]).toEqual([false, false]);
      const refused = await stream(users.member, hex);
      expect(refused.response.statusCode).toBe(404);
      refused.close();
      await share(hex, 'organization');
      const again = await stream(users.member, hex);
      await again.untilCount(1);
      [ofOwner, ofAdmin, again].forEach((each) => each?.close());
      await ask('owner', 'delete', `${LIST}/${hex}`).expect(200);
    });

    it('by an administrator of what is not shared, until that is one no longer', async () => {
      const admin = await app.createUser();
      const role = (is_admin: boolean): Test =>
        ask('admin', 'patch', `/api/v1/users/${admin.id}`).send({ is_admin }).expect(200);
      await role(true);
      const [ofHidden, ofShared] = [await stream(admin, hidden), await stream(admin, shared)];
      await Promise.all([ofHidden.untilCount(1), ofShared.untilCount(1)]);
      await role(false);
      await ofHidden.untilEnded();
      expect(ofShared.ended).toBe(false);
      ofShared.close();
    });

    it('by nobody who is removed', async () => {
      const gone = await app.createUser();
      const open = await stream(gone, shared);
      await open.untilCount(1);
      await ask('admin', 'delete', `/api/v1/users/${gone.id}`).expect(204);
      await open.untilEnded();
    });
  });

  it('tells of its children and its parent to those who may read them', async () => {
    const conversations = new ConversationRows(app);
    const parent = await conversations.conversation(users.owner.id, { visibility: 'organization' });
    const members = { parentConversationId: parent.id, createdAt: new Date(1_000) };
    const open = await conversations.conversation(users.owner.id, { ...members, visibility: 'organization' });
    const closed = await conversations.conversation(users.owner.id, {
      ...members,
      createdAt: new Date(2_000),
    });
    const ofClosed = { parentConversationId: closed.id, visibility: 'organization' } as const;
    const grandchild = await conversations.conversation(users.owner.id, ofClosed);
    const seen = async (who: Who): Promise<unknown> =>
      (await ask(who, 'get', `${LIST}?ids=${parent.hex}`).expect(200)).body[0].sub_conversation_ids;
    const parentsSeen = async (who: Who): Promise<unknown> => {
      const paths = [`?ids=${grandchild.hex}`, `/search?include_sub_conversations=true&limit=100`];
      const answers = await Promise.all(paths.map((path) => ask(who, 'get', `${LIST}${path}`).expect(200)));
      const rows = answers.flatMap(({ body }) => body.items ?? body);
      return rows.filter(({ id }) => id === grandchild.hex).map((row) => row.parent_conversation_id);
    };

    expect(await seen('owner')).toEqual([open.hex, closed.hex]);
    expect(await seen('admin')).toEqual([open.hex, closed.hex]);
    expect(await seen('member')).toEqual([open.hex]);
    expect(await parentsSeen('owner')).toEqual([closed.hex, closed.hex]);
    expect(await parentsSeen('member')).toEqual([null, null]);
    // Lists of other tests have what is shared.
    for (const { hex } of [parent, open, closed, grandchild]) {
      await ask('owner', 'delete', `${LIST}/${hex}`).expect(200);
    }
  });

  it('is moved by no member', async () => {
    for (const [method, path, body] of STEERING) {
      const answer = await ask('member', method, path(shared)).send(body);
      expect([path(shared), answer.status, answer.body.code]).toEqual([path(shared), 403, 'forbidden']);
    }
    await ask('member', 'post', `/api/v1/sandboxes/${sandbox}/pause`).expect(404);
  });

  it('lets a viewer do nothing but read', async () => {
    for (const [method, path, body] of [...OWNERS, ...STEERING]) {
      const answer = await ask('viewer', method, path(shared)).send(body);
      expect([path(shared), answer.status]).toEqual([path(shared), 403]);
    }
  });

  it('is in lists of those who may read it, beside their own', async () => {
    const own = await converse('private', users.member);
    expect(await listed('member')).toEqual([own, shared]);
    expect(await listed('member', 'owner__eq=me')).toEqual([own]);
    expect(await listed('member', 'owner__eq=others')).toEqual([shared]);
    expect(await listed('member', 'owner__eq=others&title__contains=organization')).toEqual([shared]);
    expect(await listed('member', 'title__contains=one')).toEqual([own, shared]);
    expect(await listed('viewer')).toEqual([shared]);
    // Once, though it is in both parts of the list.
    expect((await listed('owner')).toSorted()).toEqual([shared, hidden].toSorted());
    expect(await listed('owner', 'owner__eq=others')).toEqual([]);
    expect((await ask('member', 'get', `${LIST}/count`)).body).toBe(2);
    expect((await ask('member', 'get', `${LIST}/count?owner__eq=me`)).body).toBe(1);

    const personal = await ask('member', 'get', `${LIST}/search`).set('X-Org-Id', users.member.id);
    expect(personal.body.items.map(({ id }: { id: string }) => id)).toEqual([own]);
    await ask('member', 'get', `${LIST}/search`).set('X-Org-Id', users.owner.id).expect(404);
    await ask('member', 'delete', `${LIST}/${own}`).expect(200);
  });

  it('has its place in pages of both', async () => {
    const own = [await converse('private', users.member), await converse('organization', users.member)];
    const later = await converse('organization');
    const expected = [later, ...own.toReversed(), shared];
    const found: string[] = [];
    for (let page: string | null = ''; page !== null;) {
      const { body }: { body: { items: { id: string }[]; next_page_id: string | null } } = await ask(
        'member',
        'get',
        `${LIST}/search?limit=1&page_id=${encodeURIComponent(page)}`,
      ).expect(200);
      found.push(...body.items.map(({ id }) => id));
      page = body.next_page_id;
    }
    expect((await ask('member', 'get', `${LIST}/search`)).body.items).toHaveLength(expected.length);
    expect(found).toEqual(expected);
    for (const id of own) {
      await ask('member', 'delete', `${LIST}/${id}`).expect(200);
    }
    await ask('owner', 'delete', `${LIST}/${later}`).expect(200);
  });
});

describe('a private conversation', () => {
  it.each(['member', 'viewer'] as const)('is as unknown to a %s as any other', async (who) => {
    const unknown = randomUUID().replaceAll('-', '');
    expect((await ask(who, 'get', `${LIST}?ids=${hidden}`)).body).toEqual([null]);
    for (const [, path] of READS) {
      const [found, other] = [await ask(who, 'get', path(hidden)), await ask(who, 'get', path(unknown))];
      expect([found.status, found.body.detail]).toEqual([404, other.body.detail]);
    }
    for (const [method, path, body] of [...OWNERS, ...STEERING]) {
      const [found, other] = [
        await ask(who, method, path(hidden)).send(body),
        await ask(who, method, path(unknown)).send(body),
      ];
      expect([path(hidden), found.status, found.body.detail]).toEqual([
        path(hidden),
        other.status,
        other.body.detail,
      ]);
      expect(found.status).not.toBeLessThan(400);
    }
    expect(await listed(who, 'title__contains=private')).toEqual([]);
  });

  it('is read and steered by administrators, which the audit says', async () => {
    const id = await converse('private');
    const { body } = await ask('admin', 'get', `${LIST}?ids=${id}`).expect(200);
    expect(body[0]).toMatchObject({ id, session_api_key: null, conversation_url: null });
    for (const [, path] of READS) {
      await ask('admin', 'get', path(id)).expect(200);
    }
    for (const [method, path, sent] of STEERING) {
      // The agent server is away: it was asked.
      expect((await ask('admin', method, path(id)).send(sent)).status).toBe(502);
    }
    const entry = { actor: users.admin.id, owner: users.owner.id };
    const takeovers = (await auditOf(id)).filter((one) => Object(one).action === 'conversation.take_over');
    expect(takeovers).toEqual(
      STEERING.map(([, path]) => ({
        ...entry,
        action: 'conversation.take_over',
        outcome: 'requested',
        details: { operation: `POST ${path(':id').split('?')[0] ?? ''}` },
      })),
    );
    expect(await listed('admin', 'title__contains=private')).toEqual([]);
    await ask('owner', 'delete', `${LIST}/${id}`).expect(200);
  });

  it('is not steered by a key of an administrator without the scope for it', async () => {
    const issued = {
      userId: users.admin.id,
      name: 'work',
      expiresAt: null,
      scopes: ['read', 'run'] as Scope[],
    };
    const { key } = await app.app.get(ApiKeysService).issue(issued);
    await app.as(key).post(`${LIST}/${hidden}/pause`).expect(404);
    expect((await app.as(key).get(`${LIST}?ids=${hidden}`)).body).toEqual([null]);
  });
});

describe('sharing', () => {
  it('is begun and ended by the owner, at once', async () => {
    const id = await converse('private');
    const { body } = await ask('owner', 'patch', `${LIST}/${id}`)
      .send({ visibility: 'organization' })
      .expect(200);
    expect(body).toMatchObject({ visibility: 'organization', session_api_key: expect.any(String) });
    expect(await listed('member')).toContain(id);
    expect(await auditOf(id)).toMatchObject([
      { action: 'conversation.update', details: { members: ['visibility'] } },
    ]);

    await ask('owner', 'patch', `${LIST}/${id}`).send({ visibility: 'private' }).expect(200);
    await ask('member', 'get', `/api/v1/conversation/${id}/events/search`).expect(404);
    expect(await listed('member')).not.toContain(id);
    await ask('owner', 'delete', `${LIST}/${id}`).expect(200);
  });

  it('is asked for by a start, of which a viewer makes none', async () => {
    const { body } = await ask('owner', 'post', LIST).send({ visibility: 'organization' }).expect(200);
    expect(body.request).toMatchObject({ visibility: 'organization' });
    const { body: usual } = await ask('owner', 'post', LIST).send({}).expect(200);
    expect(usual.request).toMatchObject({ visibility: 'private' });
    for (const path of [LIST, `${LIST}/stream-start`, '/api/v1/sandboxes']) {
      const { body: refused } = await ask('viewer', 'post', path).send({}).expect(403);
      expect(refused.code).toBe('insufficient_scope');
    }
  });
});
