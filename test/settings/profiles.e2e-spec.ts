import { beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import { LlmProfileRepository } from '../../src/settings/profiles/llm-profile.repository.js';
import { SettingsRepository } from '../../src/settings/settings.repository.js';
import type { TestUser } from '../support/create-test-app.js';
import { SettingsClient } from '../support/settings-client.js';
import { useTestApp } from '../support/use-test-app.js';

const PATH = '/api/v1/settings/profiles';
const MASK = '**********';

describe('/api/v1/settings/profiles', () => {
  const app = useTestApp();
  let user: TestUser;
  let flat: SettingsClient;

  beforeEach(async () => {
    user = await app.createUser();
    flat = new SettingsClient(app, user);
  });

  const get = (path = '', owner = user): request.Test => app.as(owner).get(`${PATH}${path}`);
  const post = (path: string, body?: object, owner = user): request.Test =>
    app.as(owner).post(`${PATH}${path}`, body);
  const remove = (name: string, owner = user): request.Test => app.as(owner).delete(`${PATH}/${name}`);
  const list = async (): Promise<unknown> => (await get().expect(200)).body;
  const stored = async (name: string): Promise<unknown> =>
    (await app.app.get(LlmProfileRepository).findNamed(user.id, name))?.config;
  const keyOfSettings = async (): Promise<string | null> =>
    (await app.app.get(SettingsRepository).loadWithKeys(user.id)).keys.llm_api_key;

  it('is below the own organization too, and below no other', async () => {
    const other = await app.createUser();
    const path = `/api/organizations/${user.id}/profiles`;
    // As agent-canvas sends it.
    const echoes = { subscription_vendor: null, provider_connection_id: null };
    const body = { include_secrets: true, llm: { model: 'openai/gpt-5', auth_type: 'api_key', ...echoes } };
    await app.as(user).post(`${path}/fast`, body).expect(201);

    expect((await app.as(user).get(path).expect(200)).body).toEqual(await list());
    await app.as(other).get(path).expect(404);
  });

  it('saves the model of the settings, or a given one, and shows no key', async () => {
    expect(await list()).toEqual({ profiles: [], active_profile: null });
    await post('/one').expect(404);
    await flat.store({ llm_model: 'openai/m1', llm_api_key: 'hush-1' });

    const saved = await post('/one').expect(201);
    expect(saved.body).toEqual({ name: 'one', message: "Profile 'one' saved" });
    await post('/two', {
      llm: {
        model: 'anthropic/m2',
        api_key: 'hush-2',
        base_url: 'https://llm.example.com',
        temperature: 0.3,
        extra_headers: { A: 'hush-3' },
      },
    }).expect(201);
    await post('/bare', { include_secrets: false }).expect(201);

    expect(await list()).toEqual({
      profiles: [
        { name: 'one', model: 'openai/m1', base_url: null, api_key_set: true, source: 'user' },
        {
          name: 'two',
          model: 'anthropic/m2',
          base_url: 'https://llm.example.com',
          api_key_set: true,
          source: 'user',
        },
        { name: 'bare', model: 'openai/m1', base_url: null, api_key_set: false, source: 'user' },
      ],
      active_profile: null,
    });
    const detail = await get('/two').expect(200);
    expect(detail.body).toMatchObject({
      name: 'two',
      config: {
        model: 'anthropic/m2',
        api_key: null,
        temperature: 0.3,
        extra_headers: { A: MASK },
        top_p: null,
      },
      api_key_set: true,
    });
    expect(detail.text).not.toContain('hush');

    // What is shown may be sent back: edited, under the same name.
    await post('/two', { llm: { ...detail.body.config, temperature: 0.4 } }).expect(201);
    expect(await stored('two')).toEqual({
      model: 'anthropic/m2',
      api_key: 'hush-2',
      base_url: 'https://llm.example.com',
      temperature: 0.4,
      extra_headers: { A: 'hush-3' },
    });
    await post('/two', { llm: { model: 'm' }, preserve_existing_api_key: true }).expect(201);
    expect(await stored('two')).toEqual({ model: 'm', api_key: 'hush-2' });
    const rows = await app.dataSource.query('SELECT * FROM llm_profiles WHERE user_id = $1', [user.id]);
    expect(JSON.stringify(rows)).not.toContain('hush');
  });

  it('sets the settings to a profile, and notices when they leave it', async () => {
    await flat.store({ llm_model: 'openai/m1', llm_api_key: 'hush-1', llm_base_url: 'https://a.example' });
    await post('/one').expect(201);
    await post('/two', { llm: { model: 'anthropic/m2', api_key: 'hush-2', top_p: 0.5 } }).expect(201);

    const activated = await post('/two/activate').expect(200);
    expect(activated.body).toEqual({
      name: 'two',
      message: "Switched to profile 'two'",
      model: 'anthropic/m2',
    });
    expect(await flat.stored()).toMatchObject({ llm_model: 'anthropic/m2', llm_base_url: null });
    expect(await keyOfSettings()).toBe('hush-2');
    expect(await list()).toMatchObject({ active_profile: 'two' });
    const nested = await app.as(user).get('/api/v1/settings').expect(200);
    expect(nested.body).toMatchObject({
      agent_settings: { llm: { model: 'anthropic/m2', top_p: 0.5 } },
      llm_profiles: { active: 'two', profiles: { one: { model: 'openai/m1', api_key: null } } },
    });
    expect(nested.text).not.toContain('hush');

    await post('/two/rename', { new_name: 'second' }).expect(200);
    expect(await list()).toMatchObject({ active_profile: 'second' });
    await flat.store({ llm_model: 'anthropic/m3' });
    expect(await list()).toMatchObject({ active_profile: null });

    await post('/second/activate').expect(200);
    await remove('second').expect(200);
    expect(await list()).toMatchObject({ profiles: [{ name: 'one' }], active_profile: 'one' });
    expect(await keyOfSettings()).toBe('hush-1');
  });

  it.each([
    ['keeps the key of the settings for the same server', 'openai/other', 'hush-1'],
    ['sends the key of the settings to no other server', 'anthropic/other', null],
  ])('%s, where the profile has none', async (_what, model, expected) => {
    await flat.store({ llm_model: 'openai/m1', llm_api_key: 'hush-1' });
    await post('/bare', { llm: { model } }).expect(201);
    await post('/bare/activate').expect(200);

    expect(await keyOfSettings()).toBe(expected);
    expect(await list()).toMatchObject({ active_profile: 'bare' });
  });

  it('says what is wrong', async () => {
    await post('/one', { llm: { model: 'm' } }).expect(201);
    await post('/two', { llm: { model: 'm' } }).expect(201);

    const responses = [
      await post('/bad', { llm: { model: ' ' } }),
      await post('/bad', { llm: { model: 'x', aws_session_token: MASK } }),
      await post('/bad', { llm: { model: 'x'.repeat(20_000) } }),
      await post('/a%20b', {}),
      await post('/one/rename', { new_name: 'two' }),
      await post('/none/rename', { new_name: 'three' }),
      await post('/none/activate'),
      await get('/none'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([422, 422, 422, 422, 409, 404, 404, 404]);
    const gone = await remove('none').expect(200);
    expect(gone.body).toEqual({ name: 'none', message: "Profile 'none' deleted" });
  });

  it('has room for a hundred profiles of a user, also when many arrive at once', async () => {
    await post('/p0', { llm: { model: 'm' } }).expect(201);
    await app.dataSource.query(
      `INSERT INTO llm_profiles (id, user_id, name, config)
       SELECT gen_random_uuid(), $1, 'q' || n, '' FROM generate_series(1, 97) AS n`,
      [user.id],
    );
    const responses = await Promise.all([1, 2, 3, 4].map((n) => post(`/p${n}`, { llm: { model: 'm' } })));
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 201, 409, 409]);
    await post('/p0', { llm: { model: 'replaced' } }).expect(201);
  });

  it('belong to one user', async () => {
    const other = await app.createUser();
    await post('/one', { llm: { model: 'm', api_key: 'hush' } }).expect(201);

    expect((await get('', other).expect(200)).body).toEqual({ profiles: [], active_profile: null });
    await get('/one', other).expect(404);
    await post('/one/activate', undefined, other).expect(404);
    await post('/one/rename', { new_name: 'mine' }, other).expect(404);
    await remove('one', other).expect(200);
    expect(await stored('one')).toEqual({ model: 'm', api_key: 'hush' });
  });
});
