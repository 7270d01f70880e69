import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { ServiceAddress } from '../../src/config/service-address.js';
import type { SandboxRowStatus } from '../../src/v1/sandboxes/sandbox-status.js';
import { newSandboxId, newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import type { TestUser } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { insertReachableSandbox } from '../support/sandbox-rows.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

const PAGE = '<script>alert(1)</script>';

describe('POST /api/cloud-proxy', () => {
  const app = useTestApp({ SANDBOX_EXPOSE: 'path' });
  let agentServer: RawServer;
  let received: Received[];
  let id: string;
  let key: string;

  beforeAll(async () => {
    agentServer = await RawServer.start(async (incoming, response) => {
      const { method = '', url = '', headers } = incoming;
      received.push({ method, url, headers, body: await text(incoming) });
      if (url.startsWith('/page')) {
        response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': 'session=1' }).end(PAGE);
      } else {
        response
          .writeHead(url.startsWith('/api/none') ? 404 : 201, { 'content-type': 'application/json' })
          .end('{"detail":"as the agent server says it"}');
      }
    });
  });

  beforeEach(async () => {
    received = [];
    await insert('RUNNING');
  });

  afterEach(async () => {
    await app.dataSource.getRepository(Sandbox).delete({ userId: app.user.id });
  });

  afterAll(async () => {
    await agentServer.close();
  });

  async function insert(status: SandboxRowStatus, address = agentServer.origin): Promise<void> {
    id = newSandboxId();
    key = newSessionKey();
    await insertReachableSandbox(app, { id, key, status, address });
  }

  const send = (changed: object = {}, user: TestUser = app.user): request.Test =>
    request(app.url)
      .post('/api/cloud-proxy')
      .set(user.headers)
      .set('Cookie', 'session=of-the-service')
      .send({
        host: app.app.get(ServiceAddress).publicUrl,
        method: 'POST',
        path: '/api/conversations/1/events?a=%20b',
        headers: { 'X-Session-API-Key': key, 'X-Org-Id': 'any' },
        body: { role: 'user' },
        timeout_seconds: 30,
        ...changed,
      });

  it('sends what the body describes with the key of the sandbox, and no credentials for the service', async () => {
    const { body, status } = await send();

    expect([status, body]).toEqual([201, { detail: 'as the agent server says it' }]);
    const [one] = received;
    expect(one).toMatchObject({
      method: 'POST',
      url: '/api/conversations/1/events?a=%20b',
      body: '{"role":"user"}',
      headers: { 'content-type': 'application/json', 'x-session-api-key': key },
    });
    expect(JSON.stringify(one)).not.toContain(app.user.key);
    expect(one?.headers.cookie).toBeUndefined();
  });

  it.each([{ body: null }, { body: undefined }])('sends nothing for %j', async (changed) => {
    await send({ method: 'GET', ...changed }).expect(201);

    expect(received).toMatchObject([{ method: 'GET', body: '' }]);
    expect(received[0]?.headers['content-type']).toBeUndefined();
  });

  it('counts as activity in the sandbox, unless it only reads', async () => {
    const trafficAt = async (): Promise<unknown> =>
      (await app.dataSource.query('SELECT traffic_at FROM sandboxes WHERE id = $1', [id]))[0]?.traffic_at;

    await send({ method: 'GET', body: null }).expect(201);
    expect(await trafficAt()).toBeNull();
    await send().expect(201);

    await until(async () => (await trafficAt()) instanceof Date);
  });

  it('passes on what the agent server refuses', async () => {
    const { body, status } = await send({ path: '/api/none' });

    expect([status, body]).toEqual([404, { detail: 'as the agent server says it' }]);
  });

  it('makes no page of what a sandbox sends, and sets no cookie for it', async () => {
    const { headers, body } = await send({ path: '/page' }).expect(200);

    expect(headers['content-type']).toBe('application/octet-stream');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['set-cookie']).toBeUndefined();
    expect(String(body)).toBe(PAGE);
  });

  it('answers 502 when nobody is there', async () => {
    await insert('RUNNING', 'http://127.0.0.1:1');

    expect((await send().expect(502)).body.code).toBe('upstream_error');
  });

  describe('refuses, and sends nothing', () => {
    const expectNothing = (): void => expect(received).toEqual([]);
    afterEach(expectNothing);

    it('for another user, who has the key, and for a key of no sandbox or of the service', async () => {
      const { body } = await send({}, await app.createUser()).expect(404);
      expect(body.code).toBe('sandbox_not_running');
      for (const wrong of [newSessionKey(), app.user.key]) {
        await send({ headers: { 'X-Session-API-Key': wrong } }).expect(404);
      }
    });

    it.each(['http://127.0.0.1:1', 'http://169.254.169.254', 'https://example.com'])(
      'for the address %s, where the sandbox is not',
      (host) => send({ host }).expect(404),
    );

    it.each(['PAUSED', 'STARTING'] as const)('for a sandbox that is %s', async (status) => {
      await insert(status);
      await send().expect(404);
    });

    it.each([
      [{ path: 'api' }, 'path'],
      [{ path: '/a b' }, 'path'],
      [{ path: '/a\r\nx: y' }, 'path'],
      [{ method: 'CONNECT' }, 'method'],
      [{ host: 'file:///etc' }, 'host'],
      [{ headers: {} }, 'headers'],
      [{ body: 'text' }, 'body'],
    ])('for %j', async (changed, member) => {
      const { body } = await send(changed).expect(422);
      expect(body.detail[0].loc.slice(0, 2)).toEqual(['body', member]);
    });
  });
});
