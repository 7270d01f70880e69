import { beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type request from 'supertest';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import type { TestUser } from '../support/create-test-app.js';
import { useTestApp } from '../support/use-test-app.js';

const PATH = '/api/automation/v1';
const CRON = { type: 'cron', schedule: '0 9 * * 1-5', timezone: 'Europe/Berlin' };
const DAILY = { name: 'Triage', prompt: 'Look what fails.', trigger: CRON };

let user: TestUser;

const app = useTestApp();

beforeEach(async () => {
  user = await app.createUser();
});

function call(method: 'get' | 'post' | 'patch' | 'delete', path = '', as = user): request.Test {
  return app.as(as).ask(method, `${PATH}${path}`);
}

async function create(body: object = DAILY): Promise<{ id: string; [member: string]: unknown }> {
  const { body: created } = await call('post', '/preset/prompt').send(body).expect(201);
  return created;
}

/** Where the answer says that the input is wrong. */
async function refused(body: object, path = '/preset/prompt'): Promise<string[]> {
  const { body: answer } = await call('post', path).send(body).expect(422);
  return answer.detail.map(({ loc }: { loc: string[] }) => loc.join('.'));
}

describe('automations', () => {
  it('have limits of cost unless null is given', async () => {
    const none = await create({ ...DAILY, max_budget_per_run: null, max_budget_per_month: null });
    expect(none['preset_metadata']).toMatchObject({ max_budget_per_run: null, max_budget_per_month: null });
    const own = await create({ ...DAILY, max_budget_per_run: 2 });
    expect(own['preset_metadata']).toMatchObject({ max_budget_per_run: 2, max_budget_per_month: 50 });

    const { body } = await call('patch', `/${none.id}`).send({ name: 'Other' }).expect(200);
    expect(body.preset_metadata).toMatchObject({ max_budget_per_run: null, max_budget_per_month: null });
  });

  it('are made from templates', async () => {
    const { templates } = (await call('get', '/templates').expect(200)).body;
    expect(templates.map(({ id }: { id: string }) => id)).toEqual([
      'label-to-pull-request',
      'nightly-failing-checks',
      'review-on-request',
      'dependency-updates',
    ]);
    for (const { automation } of templates) {
      const { body: report } = await call('post', '/validate').send({ draft: automation }).expect(200);
      expect(report).toMatchObject({ valid: true, errors: [] });
      const made = await create(automation);
      expect(made).toMatchObject({ name: automation.name, trigger: automation.trigger, state: 'ACTIVE' });
      // Its owner may have another one for another repository.
      expect((await create(automation)).id).not.toBe(made.id);
    }
  });

  it('are created, listed, changed and removed', async () => {
    const created = await create({
      ...DAILY,
      tags: ['Software Factory', 'triage'],
      repos: [{ url: 'octo/app' }],
    });
    expect(created).toMatchObject({
      user_id: user.id,
      org_id: user.id,
      name: 'Triage',
      prompt: 'Look what fails.',
      trigger: CRON,
      tags: ['software-factory', 'triage'],
      state: 'ACTIVE',
      enabled: true,
      next_run_at: expect.stringMatching(/T0[78]:00:00\.000Z$/),
      preset_metadata: {
        repos: [{ url: 'octo/app', ref: null, provider: null }],
        max_budget_per_run: 5,
        max_budget_per_month: 50,
        max_runs_per_day: 100,
        concurrency: { limit: 1, when_busy: 'queue' },
      },
    });
    expect((await call('get', `/${created.id}`).expect(200)).body).toEqual(created);

    const { body: changed } = await call('patch', `/${created.id}`)
      .send({ state: 'INACTIVE', concurrency: { when_busy: 'skip' }, tags: null })
      .expect(200);
    expect(changed).toMatchObject({
      enabled: false,
      next_run_at: null,
      tags: [],
      prompt: 'Look what fails.',
    });
    expect(changed.preset_metadata.concurrency).toEqual({ limit: 1, when_busy: 'skip' });

    expect((await call('get').expect(200)).body).toEqual({ automations: [changed], total: 1 });
    await call('delete', `/${created.id}`).expect(204);
    expect((await call('get').expect(200)).body).toEqual({ automations: [], total: 0 });
  });

  it('start suggested tasks in place of a prompt', async () => {
    const { id } = await create({
      name: 'Tasks',
      trigger: CRON,
      tasks: { task_types: ['OPEN_ISSUE'], limit: 2 },
    });
    const { body } = await call('patch', `/${id}`).send({ prompt: 'Rather this.' }).expect(200);
    expect([body.prompt, body.preset_metadata.tasks]).toEqual(['Rather this.', null]);
  });

  it('are listed by tag, with the number of each', async () => {
    await create({ ...DAILY, tags: ['a', 'b'] });
    await create({ ...DAILY, tags: ['b'] });
    expect((await call('get', '?tag=a').expect(200)).body.total).toBe(1);
    expect((await call('get', '/tags').expect(200)).body.tags).toEqual([
      { tag: 'b', count: 2 },
      { tag: 'a', count: 1 },
    ]);
    expect((await call('get', '?limit=1&offset=1').expect(200)).body).toMatchObject({ total: 2 });
  });

  it('are made once of a template', async () => {
    const fromTemplate = { ...DAILY, template: { id: 'triage', version: '1' } };
    const first = await create(fromTemplate);
    const { body } = await call('post', '/preset/prompt')
      .send({ ...fromTemplate, name: 'Again' })
      .expect(200);
    expect(body).toEqual(first);
  });

  it.each([
    [
      'a schedule that never comes',
      { trigger: { ...CRON, schedule: '0 0 30 2 *' } },
      'body.trigger.schedule',
    ],
    ['an unknown time zone', { trigger: { ...CRON, timezone: 'Mars/Base' } }, 'body.trigger.timezone'],
    ['an event without a source', { trigger: { type: 'event', on: 'push' } }, 'body.trigger.source'],
    ['an event without keys', { trigger: { type: 'event', source: 'github', on: [] } }, 'body.trigger.on'],
    [
      'a filter that is none',
      { trigger: { type: 'event', source: 'github', on: 'push', filter: 'a ==' } },
      'body.trigger.filter',
    ],
    ['two repositories', { repos: [{ url: 'a/b' }, { url: 'c/d' }] }, 'body.repos'],
    ['what is no repository', { repos: [{ url: 'octo' }] }, 'body.repos.0.url'],
    ['a prompt and tasks', { tasks: { limit: 1 } }, 'body.prompt'],
    ['a broken placeholder', { prompt: 'See {{ event.a[ }}' }, 'body.prompt'],
    ['no prompt', { prompt: null }, 'body.prompt'],
  ])('are refused with %s', async (_what, change, loc) => {
    expect(await refused({ ...DAILY, ...change })).toEqual([loc]);
  });

  it.each([
    ['schedule', 5],
    ['schedule', null],
    ['timezone', 5],
    ['source', 5],
    ['on', 5],
    ['on', null],
    ['filter', 5],
  ])('are refused with the %s %s', async (member, value) => {
    for (const type of ['cron', 'event']) {
      const trigger = { type, [member]: value };
      expect(await refused({ ...DAILY, trigger })).toContain(`body.trigger.${member}`);
    }
  });

  it('are listed in pages of 4 MiB, and so are their runs, which tell nothing of their work', async () => {
    const { id } = await create({ ...DAILY, prompt: 'ü'.repeat(50_000), timeout: 60 });
    await app.dataSource.query(
      `INSERT INTO automations (id, user_id, org_id, name, state, trigger, work)
       SELECT gen_random_uuid(), user_id, org_id, name, state, trigger, work FROM automations, generate_series(1, 59)
       WHERE id = $1`,
      [id],
    );
    await app.dataSource.query(
      `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work, started_at)
       SELECT gen_random_uuid(), id, user_id, 'cron:' || i, 'cron', 'RUNNING', work, now()
       FROM automations, generate_series(1, 60) AS i WHERE id = $1`,
      [id],
    );
    const ids = new Set<string>();
    for (let offset = 0; offset < 60;) {
      const { body, text } = await call('get', `?limit=100&offset=${offset}`).expect(200);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4 * 1024 * 1024);
      expect(body.total).toBe(60);
      body.automations.forEach((each: { id: string }) => ids.add(each.id));
      offset += body.automations.length;
    }
    expect(ids.size).toBe(60);
    const { body: runs } = await call('get', `/${id}/runs?limit=100`).expect(200);
    expect(runs.runs).toHaveLength(60);
    expect(runs.runs[0].timeout_at).not.toBeNull();
  });

  it('are 100 for a user at most', async () => {
    await app.dataSource.query(
      `INSERT INTO automations (id, user_id, org_id, name, state, trigger, work)
       SELECT gen_random_uuid(), $1, $1, 'n', 'INACTIVE', '{}', '{}' FROM generate_series(1, 100)`,
      [user.id],
    );
    const { body } = await call('post', '/preset/prompt').send(DAILY).expect(409);
    expect(body.detail).toContain('100 automations');
  });

  it('are hidden in organizations that are not theirs', async () => {
    const { id } = await create();
    const other = await app.createUser();
    await call('get', `/${id}`).set('X-Org-Id', other.id).expect(404);
    await call('get', `/${id}`).set('X-Org-Id', user.id).expect(200);
  });

  it('are shown to clients that pick the organization of the installation', async () => {
    const { id } = await create();
    await call('get', `/${id}`).set('X-Org-Id', INSTALLATION_ORGANIZATION_ID).expect(200);
  });
});

describe('what clients ask first', () => {
  it('is which triggers and functions there are, and what is not offered', async () => {
    const { body } = await call('get', '/capabilities').expect(200);
    expect(body).toMatchObject({
      ready: true,
      triggerKinds: ['cron', 'event'],
      eventSources: ['github', 'gitlab', 'bitbucket', 'bitbucket_data_center'],
      notOffered: expect.arrayContaining(['tarballs', 'plugins', 'kv', 'git_sync']),
    });
    expect(body.triggers.cron.timezones).toContain('Europe/Berlin');
    expect(body.triggers.event.filterFunctions).toContain('icontains');
  });

  it.each([
    ['post', ''],
    ['post', '/uploads'],
    ['get', '/uploads'],
    ['delete', '/uploads/x'],
    ['post', '/preset/plugin'],
    ['post', '/plugin-spec'],
    ['get', '/drafts'],
    ['post', '/drafts/x/dispatch'],
    ['get', '/kv'],
    ['post', '/kv/batch'],
    ['put', '/git-sync/config'],
    ['post', '/telemetry/consent'],
    ['get', `/${randomUUID()}/tarball`],
    ['post', `/runs/${randomUUID()}/complete`],
    ['get', '/events/github/requested-types'],
  ] as const)('%s %s is refused as not offered', async (method, path) => {
    const { body } = await app.as(user).ask(method, `${PATH}${path}`).expect(501);
    expect(body).toMatchObject({ code: 'not_offered', detail: expect.any(String) });
    await app.as().ask(method, `${PATH}${path}`).expect(401);
  });
});

describe('validating', () => {
  async function validate(body: object): Promise<Record<string, unknown>> {
    return (await call('post', '/validate').send(body).expect(200)).body;
  }

  it('says the next five times of a schedule in its time zone, through the change to summer time', async () => {
    const { next_times: times, valid } = await validate({ trigger: CRON });
    expect(valid).toBe(true);
    expect(times).toHaveLength(5);
  });

  it('takes whole drafts, as the peer does', async () => {
    const trigger = { type: 'event', source: 'github', on: 'push', filter: 'ref', from: 'anyone' };
    const draft = { ...DAILY, trigger, secret_names: [], git: 'read' };
    expect(
      await validate({ endpoint: '/v1/preset/prompt', draft, sampleEvent: { ref: 'refs/heads/main' } }),
    ).toMatchObject({ valid: true, errors: [], sampleEventMatched: true });
    expect(await validate({ endpoint: '/v1/preset/prompt', draft: { ...draft, name: '' } })).toMatchObject({
      valid: false,
      errors: [{ field: 'name' }],
    });
    expect(await validate({ endpoint: '/v1/preset/plugin', draft })).toMatchObject({ valid: false });
    for (const change of [{ prompt: undefined }, { tasks: { limit: 1 } }]) {
      expect(await validate({ draft: { ...draft, ...change } })).toMatchObject({
        valid: false,
        errors: [{ field: 'prompt', code: 'value_error' }],
      });
    }
    for (const trigger of [undefined, null, 'push', { type: 'cron', schedule: 'daily' }]) {
      const report = await validate({ endpoint: '/v1/preset/plugin', draft: { trigger } });
      expect(report).toMatchObject({ valid: false, next_times: [], matched: null });
    }
  });
});
