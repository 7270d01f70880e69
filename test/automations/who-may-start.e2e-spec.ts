import { createHmac, randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { AutomationEventsService } from '../../src/automations/events/automation-events.service.js';
import type { FakeMember } from '../fakes/fake-world.js';
import type { TestUser } from '../support/create-test-app.js';
import { useGitHosts } from '../support/use-git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';
import { until } from '../support/until.js';
import { untilBlocked } from '../support/until-blocked.js';

const PATH = '/api/automation/v1';
const SECRET = 'a-secret-of-the-host';
const WRITER: FakeMember = { id: '71', login: 'writer', permission: 'write' };
const READER: FakeMember = { id: '72', login: 'reader', permission: 'read' };
const STRANGER: FakeMember = { id: '79', login: 'stranger', permission: 'none' };
/** Whose token the owner of the automations has stored. */
const SELF: FakeMember = { id: '4217', login: 'mona', permission: 'write' };
const FOR_ANYONE = { secret_names: [], git: 'read' };

const { hosts, app } = useGitHosts();
let user: TestUser;

beforeAll(async () => {
  hosts.worlds.github.members = [WRITER, READER];
});

beforeEach(async () => {
  hosts.clearFaults();
  user = await app.createUser();
  await new TokensClient(app, user).postTokens({ github: { token: hosts.worlds.github.token } });
  await call('post', '/webhooks')
    .send({ name: 'Host', source: 'github', webhook_secret: SECRET })
    .expect(201);
});

function call(method: 'get' | 'post' | 'patch', path: string): request.Test {
  return app.as(user).ask(method, `${PATH}${path}`);
}

function draft(trigger: object = {}, members: object = {}): object {
  const event = { type: 'event', source: 'github', on: '*', filter: "mentions(comment.body, 'slipway')" };
  return { name: 'Answer', prompt: 'Answer.', trigger: { ...event, ...trigger }, ...members };
}

async function automation(trigger: object = {}, members: object = {}): Promise<string> {
  return (await call('post', '/preset/prompt').send(draft(trigger, members)).expect(201)).body.id;
}

let comments = 0;

/** A comment of `by`, who is the sender unless another one is named. */
function comment(
  by: FakeMember,
  { sender = by, at = '2026-11-21T10:00:00Z', association = 'NONE', body = '@slipway, please' } = {},
) {
  const author = { id: Number(by.id), login: by.login, type: 'User' };
  comments += 1;
  return {
    action: 'created',
    comment: { id: comments, body, user: author, author_association: association, updated_at: at },
    issue: { number: 7, user: author },
    repository: { full_name: 'octo/app' },
    sender: { id: Number(sender.id), login: sender.login, type: 'User' },
  };
}

function deliver(payload: object, source = 'github'): request.Test {
  const text = JSON.stringify(payload);
  return request(app.url)
    .post(`${PATH}/events/${user.id}/${source}`)
    .set({
      'content-type': 'application/json',
      'x-github-event': 'issue_comment',
      'x-github-delivery': randomUUID(),
      [source === 'github' ? 'x-hub-signature-256' : 'x-signature-256']:
        `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`,
    })
    .send(text);
}

/** Why an event made no run of an automation; null where it made one. */
async function reasonOf(payload: object, id: string, source = 'github'): Promise<string | null> {
  const { body } = await deliver(payload, source).expect(202);
  const { body: found } = await call('get', `/events/${body.event_id}/matches`).expect(200);
  return found.matches.find(({ automation_id }: { automation_id: string }) => automation_id === id).reason;
}

async function runs(id: string): Promise<{ id: string; status: string }[]> {
  return (await call('get', `/${id}/runs?limit=100`).expect(200)).body.runs;
}

describe('by default, an event starts an automation', () => {
  it.each<[string, object, string | null]>([
    ['of somebody who may push', comment(WRITER), null],
    ['of the owner of the automation', comment(SELF), null],
    ['of nobody who may only read', comment(READER), 'not_a_writer: reader may not push to octo/app'],
    ['of no stranger', comment(STRANGER), 'not_a_writer: stranger may not push to octo/app'],
    [
      'of nobody who is called a member',
      comment(STRANGER, { association: 'MEMBER' }),
      'not_a_writer: stranger may not push to octo/app',
    ],
    ['of who edits the comment of a stranger', comment(STRANGER, { sender: WRITER }), null],
    [
      'of no stranger who edits the comment of an owner',
      comment(SELF, { sender: STRANGER, association: 'OWNER' }),
      'not_a_writer: stranger may not push to octo/app',
    ],
    [
      'of nobody in a repository that the token does not see',
      { ...comment(WRITER), repository: { full_name: 'octo/hidden' } },
      'not_a_writer: writer may not push to octo/hidden',
    ],
    [
      'of nobody who is not named',
      { ...comment(WRITER), sender: undefined },
      'not_a_writer: the event names nobody, or no repository',
    ],
  ])('%s', async (_of, payload, reason) => {
    const id = await automation();
    expect(await reasonOf(payload, id)).toBe(reason);
    expect(await runs(id)).toHaveLength(reason === null ? 1 : 0);
  });

  it('of an owner, whatever the host says', async () => {
    await new TokensClient(app, user).post({ provider_tokens: {} });
    const id = await automation();
    hosts.github.injectFault({ kind: 'status', status: 403, body: { message: 'Resource not accessible' } });
    expect(await reasonOf(comment(STRANGER, { association: 'OWNER' }), id)).toBeNull();
    expect(await reasonOf(comment(WRITER), id)).toMatch(/^not_a_writer: /);
  });

  it('only once the host has answered, which it may do at the next delivery', async () => {
    const id = await automation();
    const payload = comment(WRITER);
    hosts.github.injectFault({ kind: 'status', status: 503 });
    await deliver(payload).expect(502);
    hosts.clearFaults();
    expect((await deliver(payload).expect(202)).body).toMatchObject({
      duplicate: false,
      truncated: false,
      matched: [{ automation_id: id }],
    });
  });

  it('of strangers never, who use up no runs of the day and replace none', async () => {
    const id = await automation({}, { max_runs_per_day: 2, concurrency: { limit: 1, when_busy: 'replace' } });
    expect(await reasonOf(comment(WRITER), id)).toBeNull();
    for (let sent = 0; sent < 5; sent += 1) {
      expect(await reasonOf(comment(STRANGER), id)).toContain('not_a_writer');
    }
    expect((await runs(id)).map(({ status }) => status)).not.toContain('CANCELLED');
    expect(await reasonOf(comment(WRITER), id)).toBeNull();
  });

  it('and a draft says so before it is one', async () => {
    const trigger = { type: 'event', source: 'github', on: '*' };
    const validate = async (by: FakeMember) => {
      const event = { key: 'issue_comment.created', payload: comment(by) };
      return (await call('post', '/validate').send({ trigger, event }).expect(200)).body;
    };
    expect(await validate(WRITER)).toMatchObject({ matched: true, reasons: [] });
    expect(await validate(STRANGER)).toMatchObject({
      matched: false,
      reasons: ['not_a_writer: stranger may not push to octo/app'],
    });
  });
});

describe('from anyone', () => {
  it.each<[string, object, string[]]>([
    ['without the names of secrets', { git: 'read' }, ['secret_names']],
    ['with null for the names of secrets', { secret_names: null, git: 'none' }, ['secret_names']],
    ['without git', { secret_names: [] }, ['git']],
    ['with the right to push', { secret_names: ['A'], git: 'write' }, ['git']],
    ['with neither', {}, ['secret_names', 'git']],
  ])('needs restrictions: %s it is refused', async (_how, members, refused) => {
    const { body } = await call('post', '/preset/prompt')
      .send(draft({ from: 'anyone' }, members))
      .expect(422);
    expect(body.detail.map(({ loc }: { loc: string[] }) => loc)).toEqual(
      refused.map((member) => ['body', member]),
    );
  });

  it('keeps them when it is changed', async () => {
    const id = await automation({ from: 'anyone' }, FOR_ANYONE);
    await call('patch', `/${id}`).send({ git: 'write' }).expect(422);
    await call('patch', `/${id}`).send({ secret_names: null }).expect(422);
    const { body } = await call('get', `/${id}`).expect(200);
    expect(body.trigger).toMatchObject({ from: 'anyone' });
    const writers = await automation();
    await call('patch', `/${writers}`)
      .send({ trigger: { type: 'event', source: 'github', on: '*', from: 'anyone' } })
      .expect(422);
  });

  it('a stranger starts ten runs a day, and does not keep others from theirs', async () => {
    const id = await automation({ from: 'anyone' }, FOR_ANYONE);
    for (let sent = 0; sent < 10; sent += 1) {
      expect(await reasonOf(comment(STRANGER), id)).toBeNull();
    }
    expect(await reasonOf(comment(STRANGER), id)).toBe('This account has had 10 runs within a day.');
    expect((await runs(id)).filter(({ status }) => status === 'SKIPPED')).toHaveLength(1);
    expect(await reasonOf(comment(READER), id)).toBeNull();
  });
});

it.each<[string, string, object, number]>([
  ['made inactive', `state = 'INACTIVE'`, { state: 'INACTIVE' }, 0],
  [
    'given to writers alone, with all that they may use',
    `trigger = trigger || '{"from": "writers"}', work = work || '{"secret_names": null, "git": "write"}'`,
    { trigger: expect.objectContaining({ from: 'writers' }) },
    0,
  ],
  [
    'given another trigger that matches too',
    `trigger = trigger || '{"on": "issue_comment.*"}'`,
    { trigger: expect.objectContaining({ on: 'issue_comment.*' }) },
    1,
  ],
])(
  'an automation that is %s while an event is judged counts as it is then',
  async (_how, change, seen, made) => {
    const id = await automation({ from: 'anyone' }, FOR_ANYONE);
    const asked = await app.dataSource.transaction(async (manager) => {
      await manager.query(`UPDATE automations SET ${change} WHERE id = $1`, [id]);
      const answer = deliver(comment(STRANGER)).then((response) => response);
      await Promise.race([untilBlocked(app.dataSource), answer]);
      return { answer };
    });

    expect((await asked.answer).body.matched).toHaveLength(made);
    expect(await runs(id)).toHaveLength(made);
    expect((await call('get', `/${id}`).expect(200)).body).toMatchObject(seen);
  },
);

it('an automation that is changed each time an event has been judged is not started by that', async () => {
  const [id, other] = [await automation(), await automation()];
  // A change that is seen only after the judgement: in the transaction that stores the event.
  await app.dataSource.query(`
    CREATE FUNCTION change_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      UPDATE automations SET trigger = trigger || '{"on": "issue_comment.*"}' WHERE id = '${id}';
      RETURN NULL;
    END $$;
    CREATE TRIGGER changing AFTER INSERT ON automation_events FOR EACH ROW EXECUTE FUNCTION change_trigger()`);
  const { status, body } = await deliver(comment(WRITER));
  await app.dataSource.query('DROP FUNCTION change_trigger CASCADE');

  expect(status).toBe(202);
  expect(body.matched).toEqual([expect.objectContaining({ automation_id: other })]);
  expect(await runs(id)).toEqual([]);
});

it('an event that waits for its turn while its webhook is disabled starts nothing', async () => {
  const id = await automation();
  const { body: known } = await call('get', '/webhooks').expect(200);
  const limit = app.app.get(AutomationEventsService)['ofOrganizations'];
  const send = async (): Promise<number> => (await deliver(comment(WRITER))).status;
  const answers = await app.dataSource.transaction(async (manager) => {
    await manager.query('SELECT FROM automations WHERE id = $1 FOR UPDATE', [id]);
    const begun = [send(), send()];
    await untilBlocked(app.dataSource, 2);
    const late = send();
    await until(() => limit.waiting(user.id) === 1);
    await call('patch', `/webhooks/${known.webhooks[0].id}`).send({ enabled: false }).expect(200);
    return [...begun, late];
  });

  expect(await Promise.all(answers)).toEqual([202, 202, 401]);
  expect(await runs(id)).toHaveLength(2);
});

describe('the account of the owner starts nothing', () => {
  /** As if a run had been under way then. */
  async function withRun(trigger: object = {}): Promise<string> {
    const id = await automation(trigger);
    await deliver(comment(WRITER)).expect(202);
    await app.dataSource.query(
      `UPDATE automation_runs SET status = 'COMPLETED', started_at = '2026-11-21T11:00:00Z', completed_at = '2026-11-21T11:10:00Z'
       WHERE automation_id = $1`,
      [id],
    );
    return id;
  }

  it.each<[string, string, boolean]>([
    ['before a run', '2026-11-21T10:59:00Z', true],
    ['while a run is under way', '2026-11-21T11:05:00Z', false],
    ['as it ends, by another clock', '2026-11-21T11:10:03Z', false],
    ['after it', '2026-11-21T11:11:00Z', true],
  ])('by what it writes while a run is under way: %s', async (_when, at, starts) => {
    const id = await withRun();
    const reason = starts ? null : 'The account of its owner wrote it while a run was under way.';
    expect(await reasonOf(comment(SELF, { at }), id)).toBe(reason);
    expect(await reasonOf(comment(WRITER, { at }), id)).toBeNull();
  });

  it('by the answers of the service', async () => {
    const id = await automation();
    const body = '@slipway did it\n\n_(Slipway, round 1 of 5)_';
    expect(await reasonOf(comment(SELF, { body }), id)).toBe('The service wrote it.');
    expect(await reasonOf(comment(WRITER, { body }), id)).toBeNull();
  });
});

it('a comment that several hooks tell of is one event', async () => {
  const id = await automation();
  const payload = comment(WRITER);
  const { body: first } = await deliver(payload).expect(202);
  for (const more of [
    { organization: { id: 1 } },
    { installation: { id: 2 } },
    { enterprise: { updated_at: '2026-11-21T12:00:00Z' } },
  ]) {
    expect((await deliver({ ...payload, ...more }).expect(200)).body).toEqual({ ...first, duplicate: true });
  }
  const edited = {
    ...payload,
    action: 'edited',
    comment: { ...payload.comment, updated_at: '2026-11-21T10:05:00Z' },
  };
  await deliver(edited).expect(202);
  expect(await runs(id)).toHaveLength(2);
});

it('the signature is over the bytes, not over what they are read as', async () => {
  const text = JSON.stringify({ ...comment(WRITER), note: '\uFFFD' });
  const signature = `sha256=${createHmac('sha256', SECRET).update(text).digest('hex')}`;
  const bytes = Buffer.from(text);
  bytes.fill(0xff, bytes.indexOf(0xef), bytes.indexOf(0xef) + 1);
  const { status } = await fetch(`${app.url}${PATH}/events/${user.id}/github`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'issue_comment',
      'x-hub-signature-256': signature,
    },
    body: bytes,
  });
  expect(status).toBe(401);
});

describe('a source of your own', () => {
  const BUILD = { type: 'build.failed', user: { role: 'maintainer' } };

  async function source(writers_expr: string | null): Promise<string> {
    const webhook = { name: 'CI', source: 'ci', webhook_secret: SECRET, writers_expr };
    const { body } = await call('post', '/webhooks').send(webhook).expect(201);
    expect(body.writers_expr).toBe(writers_expr);
    return automation({ source: 'ci', filter: null });
  }

  it.each<[string, string | null, string | null]>([
    ['says who may write', "user.role == 'maintainer'", null],
    [
      'says that somebody may not',
      "user.role == 'admin'",
      'not_a_writer: writers_expr of the webhook is false for the event',
    ],
    ['says nothing', null, 'not_a_writer: the webhook of this source has no writers_expr'],
    [
      'cannot be judged',
      '@ | [@, @] | [::2]',
      'not_a_writer: writers_expr of the webhook failed: a slice with a step is not supported',
    ],
  ])('%s', async (_what, writers_expr, reason) => {
    expect(await reasonOf(BUILD, await source(writers_expr), 'ci')).toBe(reason);
  });

  it('whose expression is none is refused', async () => {
    await call('post', '/webhooks').send({ name: 'CI', source: 'ci', writers_expr: 'a ==' }).expect(422);
  });

  it('starts for anyone what is for anyone', async () => {
    await source(null);
    expect(
      await reasonOf(
        BUILD,
        await automation({ source: 'ci', filter: null, from: 'anyone' }, FOR_ANYONE),
        'ci',
      ),
    ).toBeNull();
  });
});
