import { describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { Draining } from '../../src/health/readiness.js';
import { SandboxBackendError, type SandboxFacts } from '@slipway/sandboxes/sandbox-backend.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { createTestApp } from '../support/create-test-app.js';
import { MetricsServer } from '../../src/observability/metrics.server.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { sessionOf } from '../support/sign-in-browser.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

/** Where the fake engine is: only the operator may read it. */
const ENGINE_ADDRESS = '10.11.12.13:2375';

interface Part {
  name: string;
  status: string;
  required: boolean;
  advice: string | null;
  cause?: string | null;
}

class AbsentEngine extends EmptySandboxBackend {
  isAway = false;

  override async inspect(id: string): Promise<SandboxFacts> {
    if (this.isAway) {
      throw new SandboxBackendError(`no engine answers at ${ENGINE_ADDRESS}`);
    }
    return super.inspect(id);
  }
}
const engine = new AbsentEngine();

const service = useTestApp({}, { sandboxBackend: engine });

async function partsOf(headers: Record<string, string> = {}): Promise<Map<string, Part>> {
  const { body } = await request(service.url).get('/health/ready').set(headers);
  return new Map((body.parts as Part[]).map((part) => [part.name, part]));
}

describe('GET /health/ready', () => {
  it('names every part, the required ones first', async () => {
    await until(async () => (await request(service.url).get('/health/ready')).body.status === 'ok');
    const { body } = await request(service.url).get('/health/ready').expect(200);

    expect(body.parts.map(({ name, required, status }: Part) => [name, required, status])).toEqual([
      ['shutdown', true, 'ok'],
      ['database', true, 'ok'],
      ['migrations', true, 'ok'],
      ['notifications', false, 'ok'],
      ['sandbox_backend', false, 'ok'],
    ]);
  });

  it('stays 200 without the sandbox backend, says what to do, and tells the cause, which names addresses, to administrators alone', async () => {
    engine.isAway = true;
    try {
      await until(async () => (await partsOf()).get('sandbox_backend')?.status === 'failed');
      const { body } = await request(service.url).get('/health/ready').expect(200);

      expect(body.status).toBe('degraded');
      expect((await partsOf()).get('sandbox_backend')?.advice).toContain('SANDBOX_BACKEND');
      await request(service.url).get('/ready').expect(200, '"OK"');

      expect((await partsOf(service.admin.headers)).get('sandbox_backend')?.cause).toContain(ENGINE_ADDRESS);
      const { key } = service.admin;
      const browser = await sessionOf(service.url, key);
      expect((await partsOf(browser)).get('sandbox_backend')?.cause).toContain(ENGINE_ADDRESS);
      const linked = { ...browser, 'Sec-Fetch-Site': 'same-site' };
      for (const headers of [{}, service.user.headers, { 'X-Session-API-Key': 'nobody' }, linked]) {
        const { text } = await request(service.url).get('/health/ready').set(headers).expect(200);
        expect(text).not.toContain(ENGINE_ADDRESS);
        expect(text).not.toContain('"cause"');
      }
    } finally {
      engine.isAway = false;
    }
    await until(async () => (await partsOf()).get('sandbox_backend')?.status === 'ok');
  });

  it('is 503 while a migration of this version is missing', async () => {
    const newest = MIGRATIONS.at(-1)?.name ?? '';
    await service.dataSource.query('UPDATE schema_migrations SET name = $2 WHERE name = $1', [
      newest,
      'later',
    ]);
    try {
      const { body } = await request(service.url).get('/health/ready').expect(503);

      expect(body.code).toBe('unavailable');
      expect(body.parts.find(({ name }: Part) => name === 'migrations')).toMatchObject({
        status: 'failed',
        advice: expect.stringContaining('Restart this replica'),
      });
      await request(service.url).get('/ready').expect(503);
      await request(service.url).get('/health/live').expect(200, { status: 'ok' });
    } finally {
      await service.dataSource.query('UPDATE schema_migrations SET name = $2 WHERE name = $1', [
        'later',
        newest,
      ]);
    }
    await request(service.url).get('/health/ready').expect(200);
  });

  it('is 503 once this replica stops', async () => {
    const replica = await createTestApp({}, service.databaseUrl);
    try {
      replica.app.get(Draining).begin();

      for (const path of ['/health/ready', '/ready']) {
        const { body, headers } = await request(replica.url).get(path).expect(503);
        expect(body).toMatchObject({
          code: 'unavailable',
          detail: 'This replica is stopping; another one answers.',
        });
        expect(headers['retry-after']).toBe('1');
      }
      const { body } = await request(replica.url).get('/health/ready');
      expect((body.parts as Part[])[0]).toMatchObject({ name: 'shutdown', status: 'failed' });
      // It answers everything else, and sends clients to other connections.
      await request(replica.url).get('/health/live').expect(200);
      const { headers } = await request(replica.url)
        .post('/api/settings')
        .set({ ...replica.user.headers, connection: 'keep-alive' })
        .send({ language: 'de' })
        .expect(200);
      expect(headers['connection']).toBe('close');
    } finally {
      await replica.close();
    }
  });
});

it('there are no metrics unless a port is given', () => {
  expect(service.app.get(MetricsServer).port).toBeNull();
});

describe('GET /api/v1/diagnostics', () => {
  it('tells administrators the versions, how the parts are, and what the service does for all users', async () => {
    await insertSandboxRow(service.dataSource, service.user.id);
    await insertSandboxRow(service.dataSource, service.admin.id);

    const { body } = await request(service.url)
      .get('/api/v1/diagnostics')
      .set(service.admin.headers)
      .expect(200);
    expect(body).toMatchObject({
      versions: { node: process.versions.node },
      parts: expect.arrayContaining([expect.objectContaining({ name: 'database', status: 'ok' })]),
      activity: {
        starts_waiting: { place: 0, sandbox: 0 },
        starts: { WAITING_FOR_SANDBOX: 0 },
        conversations: { running: 0 },
        sandboxes: { RUNNING: 2, PAUSED: 0 },
      },
    });
  });
});
