import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, execute } from '../../support/test-database.js';
import { PlantedSecrets } from './support/planted-secrets.js';
import { SecretWatch } from './support/secret-watch.js';

const SANDBOXES = '/api/v1/sandboxes/search';

/** A search that finds no secrets proves something only if it is able to find one. */
describe('the search for secrets after a journey', () => {
  let secrets: PlantedSecrets;
  let watch: SecretWatch;

  beforeEach(() => {
    secrets = new PlantedSecrets();
    watch = new SecretWatch(secrets);
  });

  it('finds them in responses, in every usual form', () => {
    const secret = secrets.plant('LLM key');
    const forms = [
      secret,
      Buffer.from(`key ${secret}`).toString('hex'),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
    ];
    forms.forEach((form, index) =>
      watch.saw({ method: 'GET', path: `/api/settings/${index}`, text: JSON.stringify({ form }) }),
    );
    expect(watch.findings()).toEqual(
      forms.map((_, index) => `LLM key in the response of GET /api/settings/${index}`),
    );
  });

  it('lets the owner of a sandbox see its key, and learns it there', () => {
    const key = 'session-key-of-somebody';
    const text = JSON.stringify({ items: [{ session_api_key: key }] });
    watch.saw({ method: 'GET', path: SANDBOXES, text });
    expect(watch.findings()).toEqual([]);
    watch.saw({ method: 'GET', path: '/api/settings', text });
    watch.saw({ method: 'GET', path: SANDBOXES, text: JSON.stringify({ detail: key }) });
    expect(watch.findings()).toEqual([
      'session key in the response of GET /api/settings',
      `session key in the response of GET ${SANDBOXES}`,
    ]);
  });

  it('finds them in arguments and environments, but for those of tools', async () => {
    const [llm, custom] = [secrets.plant('LLM key'), secrets.plant('custom secret')];
    const script = 'console.log("ready"); setInterval(() => {}, 1000)';
    const child = spawn(process.execPath, ['-e', script, custom], { env: { LLM: llm, CUSTOM: custom } });
    await once(child.stdout, 'data');
    watch.lookAtProcesses();
    child.kill();
    await once(child, 'exit');
    const program = path.basename(process.execPath);
    expect(watch.findings()).toEqual([
      `LLM key in the environment of ${program}`,
      `custom secret in the arguments of ${program}`,
    ]);
  });

  it('finds them in logs, in files but for those that hold keys, and in tables', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'secret-watch-'));
    const database = await createTestDatabase();
    try {
      const [key, token] = [secrets.plant('administrator key'), secrets.plant('git token')];
      await writeFile(path.join(folder, 'api-key'), key);
      await mkdir(path.join(folder, 'sandboxes'));
      await writeFile(path.join(folder, 'sandboxes', 'config'), `https://x:${token}@example.com`);
      watch.lookAtFiles(folder);
      watch.lookAtLog(['started', `refused ${key}`]);
      await execute(database.url, 'CREATE TABLE leaks (content bytea)');
      await execute(database.url, `INSERT INTO leaks VALUES ('${token}'::bytea)`);
      await watch.lookAtDatabase(database.url);
      expect(watch.findings()).toEqual([
        'administrator key in the log of the service',
        'git token in the file sandboxes/config',
        'git token in the table public.leaks',
      ]);
    } finally {
      await database.drop();
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  });
});
