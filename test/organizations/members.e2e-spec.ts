import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Test } from 'supertest';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp();
const ORG = `/api/organizations/${INSTALLATION_ORGANIZATION_ID}`;
const BOOTSTRAP = 'admin@localhost';

/** What administrators change of others. */
const ROWS = `
  SELECT (SELECT array_agg((id, disabled_at) ORDER BY id) FROM users)::text AS users,
    (SELECT array_agg((id, revoked_at) ORDER BY id) FROM api_keys)::text AS keys,
    (SELECT array_agg(id ORDER BY id) FROM user_identities)::text AS identities`;

let owner: TestUser;
let admin: TestUser;
let member: TestUser;
/** Id of a user of before, whose person is kept out. */
let removedPerson: string;

beforeAll(() => {
  owner = app.admin;
});

beforeEach(async () => {
  admin = await app.createUser();
  member = await app.createUser();
  await app.as(owner).patch(`/api/v1/users/${admin.id}`, { is_admin: true }).expect(200);
  admin = await withAllScopes(admin);
});

async function withAllScopes(user: TestUser): Promise<TestUser> {
  const issued = { userId: user.id, name: 'all', expiresAt: null, scopes: null };
  const { key } = await app.app.get(ApiKeysService).issue(issued);
  return { ...user, key, headers: { 'X-Session-API-Key': key } };
}

function ask(user: TestUser, method: 'get' | 'post' | 'patch' | 'delete', path: string): Test {
  return app.as(user).ask(method, path);
}

async function roleOf(user: TestUser): Promise<string> {
  return (await ask(user, 'get', `${ORG}/me`).expect(200)).body.role;
}

describe('the organization of the installation', () => {
  it('is picked by X-Org-Id, as the personal one is', async () => {
    const current = async (id: string): Promise<unknown> =>
      (await ask(member, 'get', '/api/organizations').set('X-Org-Id', id).expect(200)).body.current_org_id;
    expect(await current(member.id)).toBe(member.id);
    expect(await current(member.id.replaceAll('-', '').toUpperCase())).toBe(member.id);
    expect(await current(INSTALLATION_ORGANIZATION_ID)).toBe(INSTALLATION_ORGANIZATION_ID);
    for (const id of [admin.id, randomUUID(), 'x', '']) {
      const { body } = await ask(member, 'get', '/api/organizations').set('X-Org-Id', id).expect(404);
      expect(body.detail).toBe('There is no organization with this id.');
    }
  });

  it('has all users as members, with their roles', async () => {
    expect([await roleOf(owner), await roleOf(admin), await roleOf(member)]).toEqual([
      'owner',
      'admin',
      'member',
    ]);
    const { body } = await ask(member, 'get', `${ORG}/members?limit=100`).expect(200);
    const [{ count }] = await app.dataSource.query(
      'SELECT count(*)::int FROM users WHERE removed_at IS NULL',
    );
    expect(body.items).toHaveLength(count);
    expect(body.items).toContainEqual({
      user_id: owner.id,
      email: BOOTSTRAP,
      role: 'owner',
      role_id: 1,
      role_rank: 1,
      status: 'active',
    });
  });

  it('lists members in pages, and by a part of the address', async () => {
    const first = await ask(member, 'get', `${ORG}/members?limit=2`).expect(200);
    expect(first.body).toMatchObject({ current_page: 1, per_page: 2, next_page_id: '2' });
    const second = await ask(member, 'get', `${ORG}/members?limit=2&page_id=2`).expect(200);
    expect(second.body.current_page).toBe(2);
    const addresses = [...first.body.items, ...second.body.items].map(({ email }) => email);
    expect(addresses).toEqual([...new Set(addresses)].toSorted((a, b) => (a < b ? -1 : 1)));

    const { body } = await ask(member, 'get', `${ORG}/members?email=ADMIN@LOCAL`).expect(200);
    expect(body.items.map(({ email }: { email: string }) => email)).toEqual([BOOTSTRAP]);
    expect((await ask(member, 'get', `${ORG}/members?email=%25`)).body.items).toEqual([]);
    await ask(member, 'get', `${ORG}/members?page_id=-1`).expect(422);
  });

  it('shows of a personal organization its user alone', async () => {
    const { body: own } = await ask(member, 'get', `/api/organizations/${member.id}/members`).expect(200);
    expect(own.items).toMatchObject([{ user_id: member.id, role: 'owner' }]);
    await ask(member, 'get', `/api/organizations/${member.id}/members/${admin.id}`).expect(404);
    for (const path of ['me', 'members', 'profiles', 'profiles/fast']) {
      const { body } = await ask(member, 'get', `/api/organizations/${admin.id}/${path}`).expect(404);
      expect(body.detail).toBe('There is no organization with this id.');
    }
    await ask(owner, 'patch', `/api/organizations/${owner.id}/members/${member.id}`)
      .send({ role: 'admin' })
      .expect(404);
  });

  it.each([
    ['post', '/api/organizations'],
    ['delete', ORG],
    ['post', `${ORG}/members/invite`],
    ['post', `${ORG}/switch`],
  ] as const)('says what of the peer is not offered: %s %s', async (method, path) => {
    const { body } = await ask(owner, method, path).expect(501);
    expect(body.code).toBe('not_offered');
    expect(body.detail).toContain(`${method.toUpperCase()} ${path} is not offered here`);
  });

  it('says where one conversation is asked for', async () => {
    const { body } = await ask(owner, 'get', `${ORG}/conversations/${randomUUID()}`).expect(501);
    expect(body).toMatchObject({ code: 'not_offered', detail: expect.stringContaining('?ids=') });
  });
});

describe('a role', () => {
  const give = (by: TestUser, to: TestUser, role: unknown): Test =>
    ask(by, 'patch', `${ORG}/members/${to.id}`).send({ role });

  it('is given by an owner, and holds for the next request', async () => {
    const { body } = await give(owner, member, 'viewer').expect(200);
    expect(body).toMatchObject({ user_id: member.id, role: 'viewer', role_rank: 4 });
    expect((await ask(member, 'post', '/api/v1/app-conversations').send({}).expect(403)).body.code).toBe(
      'insufficient_scope',
    );
    await give(owner, member, 'member').expect(200);
    await ask(member, 'post', '/api/v1/app-conversations').send({ initial_message: 'no' }).expect(422);
    await give(owner, member, 'owner').expect(200);
    expect(await roleOf(member)).toBe('owner');
    await give(owner, member, 'member').expect(200);
    expect(await roleOf(member)).toBe('member');
    const entries = await app.dataSource.query(
      "SELECT actor_user_id AS actor, details FROM audit_entries WHERE action = 'user.set_role' AND resource_id = $1 ORDER BY at",
      [member.id],
    );
    expect(entries).toEqual(
      ['viewer', 'member', 'owner', 'member'].map((role) => ({ actor: owner.id, details: { role } })),
    );
  });

  it('is given by nobody else, and by nobody to themselves', async () => {
    expect((await give(admin, member, 'viewer').expect(403)).body.detail).toBe(
      'Only an owner of the organization may do this.',
    );
    await give(admin, owner, 'member').expect(403);
    await give(member, member, 'owner').expect(403);
    await give(owner, owner, 'member').expect(403);
    for (const id of [owner.id.replaceAll('-', ''), owner.id.toUpperCase()]) {
      await give(owner, { ...owner, id }, 'member').expect(403);
      await ask(owner, 'delete', `${ORG}/members/${id}`).expect(403);
    }
    expect([await roleOf(owner), await roleOf(admin), await roleOf(member)]).toEqual([
      'owner',
      'admin',
      'member',
    ]);
  });

  describe('of an owner', () => {
    const USERS = '/api/v1/users';
    const KEYS = '/api/v1/api-keys';
    let spare: string;
    beforeAll(async () => {
      spare = (await ask(owner, 'post', KEYS).send({ name: 'spare' }).expect(201)).body.id;
    });
    const issue = (by: TestUser): Test => ask(by, 'post', KEYS).send({ name: 'own', user_id: owner.id });
    const state = (): Promise<unknown[]> =>
      app.dataSource.query(
        `SELECT is_admin, is_owner, disabled_at, (SELECT count(*) FROM api_keys k WHERE user_id = u.id AND revoked_at IS NULL)
         FROM users u WHERE id = $1`,
        [owner.id],
      );
    const attempts: [string, (by: TestUser) => Test][] = [
      ['disabled', (by) => ask(by, 'post', `${USERS}/${owner.id}/disable?sandboxes=keep`)],
      ['demoted', (by) => ask(by, 'patch', `${USERS}/${owner.id}`).send({ is_admin: false })],
      ['removed', (by) => ask(by, 'delete', `${USERS}/${owner.id}`)],
      ['impersonated by a key', issue],
      ['locked out of keys', (by) => ask(by, 'delete', `${KEYS}/${spare}`)],
    ];

    it.each(attempts)('is not %s by an administrator', async (_what, attempt) => {
      const before = await state();
      const { body } = await attempt(admin).expect(403);
      expect(body).toMatchObject({
        code: 'forbidden',
        detail: 'Only an owner of the organization may do this.',
      });
      expect(await state()).toEqual(before);
    });

    it('is changed by another owner', async () => {
      await give(owner, member, 'owner').expect(200);
      const other = await app.createUser();
      await give(owner, other, 'owner').expect(200);
      await ask(other, 'post', `${USERS}/${member.id}/disable?sandboxes=keep`).expect(200);
      await ask(admin, 'post', `${USERS}/${member.id}/enable`).expect(200);
      await ask(other, 'patch', `${USERS}/${member.id}`).send({ is_admin: false }).expect(200);
      await ask(other, 'delete', `${KEYS}/${(await issue(other).expect(201)).body.id}`).expect(204);
      await ask(other, 'patch', `${USERS}/${other.id}`).send({ is_admin: false }).expect(200);
      expect([await roleOf(member), await roleOf(other)]).toEqual(['member', 'member']);
    });
  });

  it('is unknown where there is no such member', async () => {
    await ask(owner, 'patch', `${ORG}/members/${randomUUID()}`).send({ role: 'admin' }).expect(404);
    await ask(owner, 'patch', `${ORG}/members/x`).send({ role: 'admin' }).expect(422);
  });

  it('of an owner does not come back with that of an administrator', async () => {
    await give(owner, member, 'owner').expect(200);
    // As a replica of version 0.2.0 does.
    await app.dataSource.query('UPDATE users SET is_admin = false WHERE id = $1', [member.id]);
    await ask(owner, 'patch', `/api/v1/users/${member.id}`).send({ is_admin: true }).expect(200);
    expect(await roleOf(member)).toBe('admin');
  });

  it('of an owner is what administrators may give where no owner is left', async () => {
    await app.dataSource.query('UPDATE users SET is_owner = false');
    await give(admin, member, 'owner').expect(200);
    await give(admin, owner, 'viewer').expect(403);
    await app.dataSource.query('UPDATE users SET is_owner = (id = $1)', [owner.id]);
  });
});

describe('a member', () => {
  it.each([
    ['an administrator', 'disabled', 'post', '/api/v1/users', '/disable', undefined],
    ['an administrator', 'made a member', 'patch', '/api/v1/users', '', { is_admin: false }],
    ['an administrator', 'removed', 'delete', '/api/v1/users', '', undefined],
    ['an owner', 'removed', 'delete', `${ORG}/members`, '', undefined],
  ] as const)(
    'who is %s is %s by the first of two who do so to each other',
    async (role, _what, method, users, action, body) => {
      const rival = await withAllScopes(await app.createUser());
      const both = [admin.id, rival.id];
      await app.dataSource.query('UPDATE users SET is_admin = true, is_owner = $2 WHERE id = ANY ($1)', [
        both,
        role === 'an owner',
      ]);
      const { asked } = await app.dataSource.transaction(async (manager) => {
        await manager.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [owner.id]);
        const answers = Promise.all([
          ask(admin, method, `${users}/${rival.id}${action}`).send(body),
          ask(rival, method, `${users}/${admin.id}${action}`).send(body),
        ]);
        await untilBlocked(app.dataSource, 2);
        return { asked: answers };
      });

      const statuses = (await asked).map(({ status }) => status);
      expect(statuses.filter((status) => status === 403)).toHaveLength(1);
      expect(statuses.filter((status) => status < 300)).toHaveLength(1);
      const left = await app.dataSource.query('SELECT FROM users WHERE id = ANY ($1)', [both]);
      expect(left).toHaveLength(method === 'delete' ? 1 : 2);
    },
  );

  it.each<[string, (rival: TestUser) => Test]>([
    ['enable a user', (rival) => ask(rival, 'post', `/api/v1/users/${member.id}/enable`)],
    ['enable themself', (rival) => ask(rival, 'post', `/api/v1/users/${rival.id}/enable`)],
    [
      'make a key for a user',
      (rival) => ask(rival, 'post', '/api/v1/api-keys').send({ name: 'lent', user_id: member.id }),
    ],
    [
      'revoke the key of a user',
      (rival) => ask(rival, 'delete', `/api/v1/api-keys/${member.key.split('_')[1]}`),
    ],
    [
      'make a user',
      (rival) => ask(rival, 'post', '/api/v1/users').send({ email: `${randomUUID()}@example.com` }),
    ],
    [
      'let a removed person in again',
      (rival) => ask(rival, 'post', `/api/v1/users/${removedPerson}/restore`),
    ],
  ])('who is an administrator and is being disabled does not %s', async (_what, act) => {
    removedPerson = randomUUID();
    await app.dataSource.query('UPDATE users SET disabled_at = now() WHERE id = $1', [member.id]);
    await app.dataSource.query(
      `INSERT INTO user_identities (id, user_id, issuer, subject, email_verified, has_role, last_seen_at)
       VALUES ($1::uuid, $1::uuid, 'https://sso.example.com', $1::text, true, true, now())`,
      [removedPerson],
    );
    const { asked, before } = await app.dataSource.transaction(async (manager) => {
      await manager.query('UPDATE users SET disabled_at = now() WHERE id = $1', [admin.id]);
      const before = await manager.query(ROWS);
      const answer = Promise.resolve(act(admin));
      // Who is not made to wait has got through already.
      await Promise.race([untilBlocked(app.dataSource), answer]);
      return { asked: answer, before };
    });

    expect((await asked).status).toBe(403);
    expect(await app.dataSource.query(ROWS)).toEqual(before);
  });

  it('is removed by an owner, which removes the user', async () => {
    await ask(admin, 'delete', `${ORG}/members/${member.id}`).expect(403);
    await ask(owner, 'delete', `${ORG}/members/${owner.id}`).expect(403);
    await ask(owner, 'delete', `${ORG}/members/${member.id}`).expect(200);
    await ask(member, 'get', '/api/organizations').expect(401);
    await ask(owner, 'delete', `${ORG}/members/${member.id}`).expect(404);
  });
});

describe('conversations of all members', () => {
  let id: string;
  let sandbox: string;

  beforeEach(async () => {
    const rows = new ConversationRows(app);
    sandbox = (await rows.sandbox(member.id, { address: 'http://127.0.0.1:9' })).id;
    const metrics = {
      accumulated_cost: 0.5,
      accumulated_token_usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        cache_read_tokens: 7,
        cache_write_tokens: 3,
      },
    };
    const members = { sandboxId: sandbox, title: 'Parser 100%' };
    const state = { ...FOLLOWED_ELSEWHERE, executionStatus: 'finished', metrics } as never;
    id = (await rows.conversation(member.id, members, state)).hex;
  });

  const find = async (query: string): Promise<{ id: string }[]> =>
    (await ask(admin, 'get', `${ORG}/conversations?${query}`).expect(200)).body.items;

  it('are shown to administrators, without what opens them', async () => {
    const [found] = await find(`search=${sandbox}`);
    expect(found).toEqual(
      expect.objectContaining({
        id,
        user_id: member.id,
        user_email: expect.stringContaining('@'),
        title: 'Parser 100%',
        visibility: 'private',
        sandbox_status: 'RUNNING',
        execution_status: 'finished',
        accumulated_cost: 0.5,
        total_tokens: 120,
        cache_read_tokens: 7,
      }),
    );
    expect(found).not.toHaveProperty('session_api_key');
    expect(found).not.toHaveProperty('conversation_url');
  });

  it('are found by title, owner and state', async () => {
    const [{ email }] = await app.dataSource.query('SELECT email FROM users WHERE id = $1', [member.id]);
    const queries = [
      'search=100%25',
      `search=${email}`,
      'execution_status=idle,finished',
      'sandbox_status=RUNNING',
      'time_window=7d',
    ];
    for (const query of queries) {
      expect([query, (await find(`per_page=100&${query}`)).map((row) => row.id)]).toEqual([
        query,
        expect.arrayContaining([id]),
      ]);
    }
    const others = ['search=200%25', 'execution_status=running', `search=${email}&sandbox_status=PAUSED`];
    for (const query of others) {
      expect([query, (await find(`per_page=100&${query}`)).map((row) => row.id)]).toEqual([
        query,
        expect.not.arrayContaining([id]),
      ]);
    }
    await ask(admin, 'get', `${ORG}/conversations?execution_status=busy`).expect(422);
    await ask(admin, 'get', `${ORG}/conversations?sort_by=password`).expect(422);
  });

  it('come in the order that was asked for, in pages', async () => {
    const other = await new ConversationRows(app).conversation(
      member.id,
      { title: 'A first', sandboxId: sandbox },
      FOLLOWED_ELSEWHERE,
    );
    const { body } = await ask(
      admin,
      'get',
      `${ORG}/conversations?sort_by=title&sort_order=asc&per_page=1&sandbox_status=RUNNING`,
    );
    expect(body).toMatchObject({ items: [{ id: other.hex }], page: 1, per_page: 1 });
    expect(body.total_pages).toBe(body.total_items);
    const costly = await find('sort_by=accumulated_cost&per_page=100');
    expect(costly.findIndex((row) => row.id === id)).toBeLessThan(
      costly.findIndex((row) => row.id === other.hex),
    );
  });

  it('are counted', async () => {
    const { body } = await ask(admin, 'get', `${ORG}/conversations/stats`).expect(200);
    const [{ cost }] = await app.dataSource.query(
      "SELECT sum((metrics ->> 'accumulated_cost')::float8) AS cost FROM followed_conversations",
    );
    expect(body).toMatchObject({
      active_conversations: 0,
      total_cost: cost,
      running_runtimes: expect.any(Number),
    });
    expect(body.completed_24h).toBeGreaterThan(0);
    expect(body.total_tokens).toBe(body.total_prompt_tokens + body.total_completion_tokens);
  });

  it('are not stopped where they do not run', async () => {
    await app.dataSource.query("UPDATE sandboxes SET status = 'PAUSED' WHERE id = $1", [sandbox]);
    await ask(admin, 'post', `${ORG}/conversations/${id}/stop`).expect(409);
    await ask(admin, 'post', `${ORG}/conversations/${randomUUID()}/stop`).expect(404);
    await ask(admin, 'post', `/api/organizations/${admin.id}/conversations/${id}/stop`).expect(404);
  });
});
