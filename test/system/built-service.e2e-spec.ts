import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import request from 'supertest';
import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { reservedPort } from '../support/reserved-port.js';
import {
  inheritedEnvironment,
  type ServiceProcess,
  startServiceProcess,
} from '../support/service-process.js';
import { until } from '../support/until.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let folder: string;
let service: ServiceProcess;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'slipway-built-'));
  // Under root PostgreSQL runs as another user, who has to get through.
  await chmod(folder, 0o711);
  service = await startServiceProcess({
    cwd: folder,
    environment: { DATA_DIR: path.join(folder, 'data'), SANDBOX_ISOLATION: 'none', METRICS_PORT: '0' },
  });
});

afterAll(async () => {
  await service?.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

it('answers with the committed document: bundling has renamed no class', async () => {
  const { body } = await request(service.url).get('/openapi.json').expect(200);
  const committed: unknown = JSON.parse(await readFile(path.join(ROOT, 'openapi.json'), 'utf8'));
  expect({ ...body, servers: undefined }).toEqual({ ...(committed as object), servers: undefined });
});

it('knows its version, and serves the pages of the documentation', async () => {
  const { version } = JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };
  const { body } = await request(service.url).get('/server_info').expect(200);
  expect(body).toMatchObject({ version });
  const { text } = await request(service.url).get('/docs/swagger-ui.css').expect(200);
  expect(text).toContain('swagger-ui');
});

it('measures the pool of its database, whose driver is loaded by TypeORM', async () => {
  const started = service.log
    .map(parseJson)
    .find((line) => jsonText(line, 'message') === 'metrics server started');
  const { text } = await request(`http://127.0.0.1:${jsonNumber(started, 'port')}`)
    .get('/metrics')
    .expect(200);
  expect(text).toMatch(/^slipway_database_connections\{state="max"\} [1-9]/m);
});

it('has maps that lead from its few files to our sources, and to nothing else', async () => {
  const built = path.join(ROOT, 'dist', 'service');
  const files = (await readdir(built, { recursive: true })).filter((file) => file.endsWith('.js.map'));
  const sources = await Promise.all(
    files.map(async (file) => {
      const map = JSON.parse(await readFile(path.join(built, file), 'utf8')) as { sources: string[] };
      return map.sources.map((source) =>
        path.relative(ROOT, path.resolve(built, path.dirname(file), source)),
      );
    }),
  );
  const found = new Set(sources.flat());
  expect(found).toContain(path.join('src', 'app.module.ts'));
  expect(found).toContain(path.join('packages', 'common', 'src', 'json-access.ts'));
  expect([...found].filter((source) => !/^(packages\/[\w-]+\/)?src\/.*\.ts$/.test(source))).toEqual([]);
});

it('stops in order on a Ctrl-C, which npm passes on once more', async () => {
  const logged = (message: string) =>
    service.log.some((line) => jsonText(parseJson(line), 'message') === message);
  // Under nohup(1), a terminal that closes ends nothing.
  process.kill(service.pid, 'SIGHUP');
  process.kill(service.pid, 'SIGINT');
  await until(() => logged('stopping'));
  process.kill(service.pid, 'SIGINT');
  // A service that ends at once never says so.
  await until(() => logged('stopped'));
  await until(() => !service.isRunning());
  expect(logged('failed to stop')).toBe(false);
});

it('serves on when nothing can be logged, as on a full disk', async () => {
  const port = await reservedPort();
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [path.join(ROOT, 'dist/service/main.js')], {
    cwd: folder,
    env: { ...inheritedEnvironment(), DATA_DIR: path.join(folder, 'data'), PORT: String(port) },
    stdio: ['ignore', full, full],
  });
  closeSync(full);
  const isLive = async (): Promise<boolean> =>
    await fetch(`http://127.0.0.1:${port}/health/live`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(async () => child.exitCode !== null || (await isLive()));

  expect(child.exitCode).toBeNull();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});
