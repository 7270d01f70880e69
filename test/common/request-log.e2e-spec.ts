import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { connect } from 'node:net';
import request from 'supertest';
import { AppLogger } from '@slipway/api/logging/app-logger.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

describe('the log of requests', () => {
  const app = useTestApp({ LOG_REQUESTS: 'true' });
  let lines: string[];

  beforeAll(async () => {
    app.app.useLogger(new AppLogger({ level: 'info', format: 'json' }));
  });

  beforeEach(() => {
    lines = [];
    const capture = (chunk: unknown): boolean => {
      lines.push(String(chunk));
      return true;
    };
    jest.spyOn(process.stdout, 'write').mockImplementation(capture);
    jest.spyOn(process.stderr, 'write').mockImplementation(capture);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  const logged = async (requestId: string): Promise<unknown> => {
    await until(() => lines.some((line) => line.includes(requestId)));
    return JSON.parse(lines.find((line) => line.includes(requestId)) ?? '');
  };

  it('never contains a key, wherever a client puts it', async () => {
    const { key, headers } = app.user;
    await app.as({ headers }).delete(`/api/v1/api-keys/${key}`).set('X-Request-Id', 'in-path');
    await request(app.url).get('/api/settings').query({ api_key: key }).set('X-Request-Id', 'in-query');

    expect(await logged('in-path')).toMatchObject({ method: 'DELETE', status: 404, user_id: app.user.id });
    expect(await logged('in-query')).toMatchObject({ path: '/api/settings', status: 401 });
    expect(lines.join('')).not.toContain(key);
  });

  it('names the request of a client that hung up', async () => {
    const { port, hostname } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      'POST /api/settings HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: hung-up\r\nExpect: 100-continue\r\n' +
        `X-Session-API-Key: ${app.user.key}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a',
    );
    // The response to `Expect`: the request has arrived.
    await new Promise((resolve) => {
      socket.once('data', resolve);
    });
    socket.destroy();

    expect(await logged('hung-up')).toMatchObject({ path: '/api/settings', aborted: true });
  });
});
