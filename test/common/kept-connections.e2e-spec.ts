import { Agent, get, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

/** The longest that balancers which cannot be configured keep an idle connection: Google Cloud's. */
const BALANCER_SECONDS = 600;

describe('a connection without requests', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await createTestApp();
  });

  afterAll(async () => {
    await app.close();
  });

  it('is closed by the proxy in front first, which would lose a request to us otherwise', async () => {
    const agent = new Agent({ keepAlive: true });
    const [response] = (await once(get(`${app.url}/health/live`, { agent }), 'response')) as [
      IncomingMessage,
    ];
    response.resume();
    agent.destroy();

    const [, seconds] = /timeout=(\d+)/.exec(String(response.headers['keep-alive'])) ?? [];
    expect(Number(seconds)).toBeGreaterThan(BALANCER_SECONDS);
  });
});
