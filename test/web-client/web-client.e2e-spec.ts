import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { SCOPES } from '../../src/common/scopes.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp();

describe('what clients ask before they have a key', () => {
  it('is the configuration, without a word about anybody', async () => {
    const { body, text } = await request(app.url).get('/api/v1/web-client/config').expect(200);

    expect(body).toMatchObject({
      app_mode: 'oss',
      posthog_client_key: null,
      providers_configured: ['github', 'gitlab', 'bitbucket'],
      feature_flags: { enable_billing: false, enable_automations: true, hide_llm_settings: false },
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      kind: 'WebClientConfig',
    });
    expect(text).not.toContain('127.0.0.1');
    expect((await request(app.url).get('/api/v1/web-client/config').set(app.user.headers)).text).toBe(text);
  });

  it.each(['/health', '/ready'])('is %s', async (path) => {
    const { text, type } = await request(app.url).get(path).expect(200);

    expect([text, type]).toEqual(['"OK"', 'application/json']);
  });
});

it('is told how to build the console where that is not built', async () => {
  const get = (path: string, accept: string): request.Test =>
    request(app.url).get(path).set('Accept', accept);
  const advice = expect.stringContaining('npm run build');
  for (const address of ['/', '/console/']) {
    const { type, text } = await get(address, 'text/html').expect(404);
    expect([type, text]).toEqual(['text/html', advice]);
  }
  expect((await get('/', 'application/json').expect(200)).body).toMatchObject({ console: null });
  expect((await get('/console/', 'application/json').expect(404)).body.detail).toEqual(advice);
});

describe('a user as web applications for organizations see them', () => {
  it('owns a space of their own', async () => {
    const get = async (path: string): Promise<unknown> =>
      (await request(app.url).get(`/api/${path}`).set(app.user.headers).expect(200)).body;
    const { id } = app.user;
    const keyId = app.user.key.split('_')[1];
    const [{ email }] = await app.dataSource.query('SELECT email FROM users WHERE id = $1', [id]);

    expect(await get('keys/current')).toEqual({
      id: keyId,
      org_id: INSTALLATION_ORGANIZATION_ID,
      user_id: id,
      auth_type: 'bearer',
      scopes: SCOPES,
      repositories: null,
    });
    expect(await get('keys/llm/byor')).toEqual({ key: null });
    expect(await get('organizations')).toEqual({
      items: [
        {
          id: INSTALLATION_ORGANIZATION_ID,
          name: new URL(app.url).host.replace('127.0.0.1', 'localhost'),
          is_personal: false,
        },
        { id, name: email, is_personal: true },
      ],
      current_org_id: INSTALLATION_ORGANIZATION_ID,
    });
    const member = {
      org_id: id,
      user_id: id,
      email,
      role: 'owner',
      permissions: expect.arrayContaining(['edit_org_settings', 'view_automations', 'manage_automations']),
    };
    expect(await get(`organizations/${id}/me`)).toEqual(member);
    expect(await get(`organizations/${id}/members/${id}`)).toEqual(member);
  });

  it('is told what is not here', async () => {
    const get = async (path: string): Promise<unknown> =>
      (await request(app.url).get(`/api/${path}`).set(app.user.headers).expect(200)).body;

    expect(await get('agent-profiles')).toEqual({ profiles: [], active_agent_profile_id: null });
  });
});
