import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { Draining } from '../../src/health/readiness.js';
import { SandboxBackendError, type SandboxFacts } from '../../src/v1/sandboxes/backends/sandbox-backend.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { DatabaseProxy } from '../support/database-proxy.js';
import { createTestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

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

let service: TestApp;
const engine = new AbsentEngine();

beforeAll(async () => {
  service = await createTestApp({}, undefined, { sandboxBackend: engine });
});

afterAll(async () => {
  await service.close();
});

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
      ['jobs', false, 'ok'],
      ['notifications', false, 'ok'],
      ['sandbox_backend', false, 'ok'],
    ]);
  });

  it('stays 200 without the sandbox backend, and says what to do', async () => {
    engine.isAway = true;
    try {
      await until(async () => (await partsOf()).get('sandbox_backend')?.status === 'failed');
      const { body } = await request(service.url).get('/health/ready').expect(200);

      expect(body.status).toBe('degraded');
      expect((await partsOf()).get('sandbox_backend')?.advice).toContain('SANDBOX_BACKEND');
      await request(service.url).get('/ready').expect(200, '"OK"');
    } finally {
      engine.isAway = false;
    }
    await until(async () => (await partsOf()).get('sandbox_backend')?.status === 'ok');
  });

  it('leaves an engine alone for seconds that could not be prepared', async () => {
    const tries: number[] = [];
    class UnreadyEngine extends EmptySandboxBackend {
      override async prepare(): Promise<never> {
        tries.push(performance.now());
        throw new SandboxBackendError('agent-sandbox is not installed');
      }
    }
    const other = await createTestApp({}, undefined, { sandboxBackend: new UnreadyEngine() });
    try {
      await until(() => tries.length === 2);
      const [first = 0, second = 0] = tries;
      expect(second - first).toBeGreaterThan(4_900);
      expect((await request(other.url).get('/health/ready')).body.status).toBe('degraded');
    } finally {
      await other.close();
    }
  }, 30_000);

  it('tells the cause, which names addresses, to administrators alone', async () => {
    engine.isAway = true;
    try {
      await until(async () => (await partsOf()).get('sandbox_backend')?.status === 'failed');

      expect((await partsOf(service.admin.headers)).get('sandbox_backend')?.cause).toContain(ENGINE_ADDRESS);
      const { key } = service.admin;
      const signedIn = await request(service.url).post('/auth/key').send({ key }).expect(200);
      const browser = { Cookie: signedIn.get('Set-Cookie')?.[0]?.replace(/;.*/, '') ?? '' };
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

  it('is 503 once this replica stops, and does not repeat where its database is while that is away', async () => {
    const database = await createTestDatabase();
    const proxy = await DatabaseProxy.start(database.url);
    const address = new URL(proxy.urlOf(database.url));
    const replica = await createTestApp({}, address.href);
    try {
      await proxy.goAway();
      await until(async () => {
        const { status, body } = await request(replica.url).get('/health/ready').set(replica.admin.headers);
        const database = (body.parts as Part[]).find(({ name }) => name === 'database');
        return status === 503 && database?.status === 'failed';
      });
      const { text } = await request(replica.url).get('/health/ready');
      expect(text).not.toContain(address.port);
      await request(replica.url).get('/health/live').expect(200);
      await proxy.comeBack();
      await until(async () => (await request(replica.url).get('/health/ready')).status === 200);

      replica.app.get(Draining).begin();

      const { body } = await request(replica.url).get('/health/ready').expect(503);
      expect(body.detail).toContain('stopping');
      expect((body.parts as Part[])[0]).toMatchObject({ name: 'shutdown', status: 'failed' });
    } finally {
      await replica.close();
      await proxy.goAway();
      await database.drop();
    }
  });
});
