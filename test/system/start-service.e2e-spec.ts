import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { chmod, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import request from 'supertest';
import { AppLogger } from '@slipway/api/logging/app-logger.js';
import { parseConfig } from '../../src/config/load-config.js';
import { MIGRATIONS } from '../../src/database/migrations.js';
import { startFakeGithub } from '../fakes/fake-github.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { until } from '../support/until.js';
import { startService, type RunningService } from '../../src/program/start-service.js';

const quiet = new AppLogger({ level: 'error', format: 'json' });

describe('the service on its embedded database', () => {
  let folder: string;
  let dataDir: string;
  let running: RunningService | undefined;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-service-'));
    // Under root PostgreSQL runs as another user, who has to get through.
    await chmod(folder, 0o711);
    dataDir = path.join(folder, 'data');
  });

  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  afterAll(async () => {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const start = async (environment: Record<string, string> = {}): Promise<string> => {
    const config = parseConfig(
      { PORT: '0', DATA_DIR: dataDir, LOG_FORMAT: 'json', LOG_REQUESTS: 'false', ...environment },
      false,
    );
    running = await startService(config, quiet);
    return `http://127.0.0.1:${running.port}`;
  };
  const firstKey = async (): Promise<string> =>
    (await readFile(path.join(dataDir, 'api-key'), 'utf8')).trim();

  it('keeps everything over a restart, and shows by its instance id that there was one', async () => {
    const log = jest.spyOn(quiet, 'log');
    const migrationLines = (): unknown[] =>
      log.mock.calls.filter(([text]) => String(text).includes('migration'));
    const whoItIs = async (url: string): Promise<{ instance_id: string }> =>
      (await request(url).get('/server_info').expect(200)).body;
    try {
      const first = await start();
      expect(migrationLines()).toEqual([
        ['migrations applied', { migrations: MIGRATIONS.map(({ name }) => name) }, 'Database'],
      ]);
      const headers = { 'X-Session-API-Key': await firstKey() };
      expect(await firstKey()).toMatch(/^slw_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/);
      expect((await stat(path.join(dataDir, 'api-key'))).mode & 0o777).toBe(0o600);
      expect((await stat(path.join(dataDir, 'encryption-keys'))).mode & 0o777).toBe(0o600);
      await request(first)
        .post('/api/settings')
        .set(headers)
        .send({ language: 'en', llm_api_key: 'sk-secret', max_iterations: 7 })
        .expect(200, { message: 'Settings stored' });
      const before = await whoItIs(first);
      expect(before).toEqual({
        title: 'Slipway',
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        uptime: expect.any(Number),
        instance_id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      });
      expect((await whoItIs(first)).instance_id).toBe(before.instance_id);
      await running?.stop();

      const second = await start();
      expect(migrationLines()).toHaveLength(1);
      expect(await firstKey()).toBe(headers['X-Session-API-Key']);
      const { body } = await request(second).get('/api/settings').set(headers).expect(200);
      expect(body).toMatchObject({
        language: 'en',
        max_iterations: 7,
        llm_api_key: null,
        llm_api_key_set: true,
      });
      expect((await whoItIs(second)).instance_id).not.toBe(before.instance_id);
    } finally {
      log.mockRestore();
    }
  });

  it('refuses to start with encryption keys that do not fit the stored secrets', async () => {
    const other = `other:${Buffer.alloc(32, 1).toString('base64')}`;

    await expect(start({ ENCRYPTION_KEYS: other })).rejects.toThrow(/^ENCRYPTION_KEYS: /);
  });

  // The start before left nothing running either, or this one would not come so far.
  it('says in one line that the port is taken, and leaves nothing running', async () => {
    const blocker = await listen();
    const { port } = blocker.address() as AddressInfo;
    try {
      await expect(start({ PORT: String(port) })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    } finally {
      blocker.close();
    }
    await start();
  });

  it('says that it is not ready before it stops, and lets a request in flight finish', async () => {
    const gate = Promise.withResolvers<void>();
    const world = sampleWorld();
    let held = false;
    const github = await startFakeGithub(world, {
      gate: async ({ body }) => {
        // The token check passes; what suggested tasks ask for is held back.
        if (body.includes('pullRequests')) {
          held = true;
          await gate.promise;
        }
      },
    });
    try {
      const url = await start({ GITHUB_API_URL: github.origin, SHUTDOWN_DELAY_SECONDS: '5' });
      const headers = { 'X-Session-API-Key': await firstKey() };
      const tokens = { provider_tokens: { github: { token: world.token } } };
      await request(url).post('/api/add-git-providers').set(headers).send(tokens).expect(200);
      const inFlight = request(url)
        .get('/api/user/suggested-tasks')
        .set(headers)
        .then((response) => response);
      await until(() => held);

      const stopped = running?.stop();
      await request(url).get('/health/ready').expect(503);
      await until(async () => (await fetch(`${url}/alive`).catch(() => null)) === null);
      gate.resolve();

      const { status, body } = await inFlight;
      expect(status).toBe(200);
      expect(body).toHaveLength(7);
      await stopped;
      running = undefined;
      await expect(fetch(url)).rejects.toThrow('fetch failed');
    } finally {
      gate.resolve();
      await github.close();
    }
  });
});

async function listen(): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return server;
}
