import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { connectionUrl, startEmbeddedPostgres } from '@slipway/embedded-postgres/embedded-postgres.js';
import { readPostmasterPid } from '../../packages/embedded-postgres/src/process-identity.js';
import { runMigrations } from '../../src/database/data-source-options.js';
import { fastFolder } from './fast-folder.js';
import { databaseUrl, execute } from './test-database.js';

/** The PostgreSQL of one test run. */
export interface TestServer {
  stop(): Promise<void>;
}

/** Speed instead of safety: the data lives as long as the run. */
const SETTINGS = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  autovacuum: 'off',
};

/**
 * Makes a template database with the current schema, on the server that TEST_DATABASE_URL names or on an embedded one,
 * and tells the workers about both through the environment.
 */
export async function startTestServer(): Promise<TestServer> {
  const given = process.env['TEST_DATABASE_URL'];
  const server = given ? { url: given, stop: () => Promise.resolve() } : await startTemporaryServer();
  try {
    const template = `slipway_template_${randomBytes(6).toString('hex')}`;
    await execute(server.url, `create database ${template}`);
    await runMigrations(databaseUrl(server.url, template));
    process.env['SLIPWAY_TEST_SERVER'] = server.url;
    process.env['SLIPWAY_TEST_TEMPLATE'] = template;
    return {
      stop: async () => {
        await execute(server.url, `drop database ${template} with (force)`);
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function startTemporaryServer(): Promise<TestServer & { url: string }> {
  const folder = await mkdtemp(path.join(await fastFolder(), 'slipway-test-'));
  // Under root the server runs as another user, who has to get in.
  await chmod(folder, 0o711);
  try {
    const server = await startEmbeddedPostgres({
      dataDir: path.join(folder, 'data'),
      settings: SETTINGS,
      initdbArgs: ['--no-sync', '--no-instructions', '--set=scram_iterations=1'],
    });
    const dismissGuard = await guard(folder);
    return {
      url: connectionUrl(server.connection),
      stop: async () => {
        await server.stop();
        dismissGuard();
        await rm(folder, { recursive: true, force: true, maxRetries: 10 });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    throw error;
  }
}

/** However the run ends (Ctrl-C, kill -9), the server and its folder go with it: a shell waits for our end. */
async function guard(folder: string): Promise<() => void> {
  const running = await readPostmasterPid(path.join(folder, 'data/postgres'));
  const script = 'read -r line && exit; kill -QUIT "$1"; while kill -0 "$1"; do sleep 0.1; done; rm -rf "$2"';
  const shell = spawn('sh', ['-c', script, 'sh', `${running?.pid}`, folder], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.unref();
  return () => shell.stdin.end('done\n');
}
