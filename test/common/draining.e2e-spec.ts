import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { Draining } from '../../src/health/readiness.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

describe('a replica that is about to stop', () => {
  let app: TestApp;

  beforeEach(async () => {
    app = await createTestApp();
    app.app.get(Draining).begin();
  });

  afterEach(async () => {
    await app.close();
  });

  it.each(['/health/ready', '/ready'])('says at %s that it is not ready', async (path) => {
    const { body, headers } = await request(app.url).get(path).expect(503);

    expect(body).toMatchObject({
      code: 'unavailable',
      detail: 'This replica is stopping; another one answers.',
    });
    expect(headers['retry-after']).toBe('1');
  });

  it('answers everything else, and sends clients to other connections', async () => {
    await request(app.url).get('/health/live').expect(200);
    const { headers } = await request(app.url)
      .post('/api/settings')
      .set({ ...app.user.headers, connection: 'keep-alive' })
      .send({ language: 'de' })
      .expect(200);

    expect(headers['connection']).toBe('close');
  });
});
