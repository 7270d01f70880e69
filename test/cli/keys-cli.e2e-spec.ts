import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { INSTALLATION_ORGANIZATION_ID } from '../../src/organizations/installation-organization.js';
import { runKeysOn, type KeysRun } from '../support/run-keys.js';
import { useTestApp } from '../support/use-test-app.js';

const NOWHERE = 'postgres://127.0.0.1:1/none';
const ENCRYPTION_KEYS = `test:${Buffer.alloc(32, 7).toString('base64')}`;

describe('npm run keys', () => {
  const app = useTestApp();

  const run = (...args: string[]): Promise<KeysRun> => runKeysOn(app.databaseUrl, args, { ENCRYPTION_KEYS });

  const whoCanListUsers = async (key: string): Promise<number> => {
    const { status } = await app.as(key).get('/api/v1/users');
    return status;
  };

  describe('create', () => {
    it('prints nothing but a key that works at once', async () => {
      const { status, stdout } = await run('create', '--admin');

      expect(status).toBe(0);
      expect(stdout).toEqual([expect.stringMatching(/^slw_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}$/)]);
      expect(await whoCanListUsers(stdout[0] ?? '')).toBe(200);
    });

    it('makes an unknown user, who is no administrator, and knows them the next time', async () => {
      const first = await run('create', '--user', 'Ada@example.com', '--name', 'ci');
      const second = await run('create', '--user', 'ada@example.com');

      expect(first.stderr).toContain('made the user ada@example.com');
      expect(second.stderr).not.toContain('made the user ada@example.com');
      expect(await whoCanListUsers(first.stdout[0] ?? '')).toBe(403);
      expect(await whoCanListUsers(second.stdout[0] ?? '')).toBe(403);
    });

    it('makes a known user an administrator on --admin, and says so', async () => {
      await run('create', '--user', 'grace@example.com');
      const { stdout, stderr } = await run('create', '--user', 'grace@example.com', '--admin');

      expect(stderr).toContain('grace@example.com is an administrator now');
      expect(await whoCanListUsers(stdout[0] ?? '')).toBe(200);
    });

    it('makes no key for the organization, and none for what stands for a removed user', async () => {
      const [{ email, keys }] = await app.dataSource.query<[{ email: string; keys: string }]>(
        'SELECT email, (SELECT count(*) FROM api_keys) AS keys FROM users WHERE id = $1',
        [INSTALLATION_ORGANIZATION_ID],
      );
      const { status, stdout, stderr } = await run('create', '--user', email);

      expect(status).not.toBe(0);
      expect(stdout).toEqual([]);
      expect(stderr).toEqual([expect.stringContaining('A user with this email address exists already.')]);
      const found = await app.as(app.admin).get(`/api/v1/users?email__eq=${email}`).expect(200);
      expect(found.body.items).toEqual([]);
      const [after] = await app.dataSource.query('SELECT count(*) AS keys FROM api_keys');
      expect(after).toEqual({ keys });
    });

    it('gives the key its end, and no more than its scopes', async () => {
      const limits = ['--expires-at', '2100-01-31T12:00:00Z', '--scopes', 'read,run'];
      const { stdout } = await run('create', '--admin', ...limits);

      expect(await whoCanListUsers(stdout[0] ?? '')).toBe(403);
      const { stdout: lines } = await run('list');
      expect(lines.find((line) => line.startsWith(idOf(stdout[0] ?? '')))).toContain('2100-01-31T12:00Z');
    });

    it.each([
      [[], 'create needs --user EMAIL or --admin'],
      [['--user', 'not an address 7f3a'], '--user: Expected'],
      [['--admin', '--scopes', 'read,7f3a'], '--scopes'],
      [['--admin', '--name', 'bootstrap'], '--name: This name is kept'],
      [['--admin', '--expires-at', 'tomorrow 7f3a'], '--expires-at: Expected'],
      [['--admin', '--expires-at', '2020-01-31T12:00:00Z'], '--expires-at: Expected a time in the future'],
    ])('refuses %j, names the flag and makes nothing', async (args, reason) => {
      const before = await run('list');
      const { status, stdout, stderr } = await run('create', ...args);

      expect({ status, stdout }).toEqual({ status: 2, stdout: [] });
      expect(stderr[0]).toContain(`slipway keys: ${reason}`);
      expect(stderr.join('\n')).not.toContain('7f3a');
      expect((await run('list')).stdout).toEqual(before.stdout);
    });
  });

  describe('list', () => {
    it("shows states and no secret, of one user's keys or of all", async () => {
      const [active = '', ended = '', revoked = ''] = (
        await Promise.all([
          run('create', '--user', 'list@example.com', '--name', 'first \u001b[2J'),
          run('create', '--user', 'list@example.com'),
          run('create', '--user', 'list@example.com'),
        ])
      ).map(({ stdout }) => stdout[0] ?? '');
      await run('revoke', idOf(revoked));
      await app.dataSource.query(`UPDATE api_keys SET expires_at = '2020-01-31T12:00:00Z' WHERE id = $1`, [
        idOf(ended),
      ]);

      const { stdout } = await run('list', '--user', 'list@example.com');
      const all = await run('list');

      const [header, ...lines] = stdout;
      expect(header).toMatch(/^ID +USER +ADMIN +NAME +CREATED +EXPIRES +LAST USED +STATE$/);
      expect(lines).toHaveLength(3);
      expect(lineOf(active)).toMatch(/list@example\.com +no +first \ufffd\[2J .* never +never +active$/);
      expect(lineOf(ended)).toMatch(/2020-01-31T12:00Z +never +expired$/);
      expect(lineOf(revoked)).toMatch(/revoked$/);
      expect(all.stdout.length).toBeGreaterThan(stdout.length);
      expect(all.stdout.join('\n')).not.toContain(active.slice(13));

      function lineOf(key: string): string | undefined {
        return lines.find((line) => line.startsWith(idOf(key)));
      }
    });
  });

  describe('revoke', () => {
    it('ends the key of a running service', async () => {
      const { stdout } = await run('create', '--admin');
      const key = stdout[0] ?? '';
      expect(await whoCanListUsers(key)).toBe(200);

      expect(await run('revoke', idOf(key))).toMatchObject({ status: 0, stdout: [] });

      app.clock.advance(5_000);
      expect(await whoCanListUsers(key)).toBe(401);
    });

    it('pauses what it made where that is asked for', async () => {
      const key = (await run('create', '--user', 'robot@example.com')).stdout[0] ?? '';
      const trigger = { type: 'cron', schedule: '0 9 * * *' };
      const { body } = await app
        .as(key)
        .post('/api/automation/v1/preset/prompt', { name: 'Triage', prompt: 'say hello', trigger })
        .expect(201);

      expect(await run('revoke', idOf(key), '--what-it-made')).toMatchObject({ status: 0, stdout: [] });

      const [row] = await app.dataSource.query('SELECT state, next_run_at FROM automations WHERE id = $1', [
        body.id,
      ]);
      expect(row).toEqual({ state: 'INACTIVE', next_run_at: null });
    });
  });

  it.each<[string, string | null, string[], number, RegExp]>([
    [
      'an unknown user',
      null,
      ['list', '--user', 'nobody@example.com'],
      2,
      /^slipway keys: --user: there is no user/,
    ],
    ['an unknown key', null, ['revoke', 'unknown0'], 1, /^slipway keys: There is no API key with this id\.$/],
    [
      'no database',
      NOWHERE,
      ['list'],
      1,
      /^slipway keys: DATABASE_URL: the database cannot be reached: .*ECONNREFUSED/,
    ],
  ])('says of %s what is wrong', async (_what, url, args, expected, words) => {
    const { status, stdout, stderr } = await runKeysOn(url ?? app.databaseUrl, args, { ENCRYPTION_KEYS });

    expect({ status, stdout }).toEqual({ status: expected, stdout: [] });
    expect(stderr[0]).toMatch(words);
  });

  it('makes no database where the service has none', async () => {
    const folder = path.join(tmpdir(), 'slipway-test-no-such-data');
    const { status, stderr } = await runKeysOn('', ['list'], { DATA_DIR: folder });

    expect(status).toBe(1);
    expect(stderr).toEqual([
      `slipway keys: DATA_DIR: there is no database in ${folder}: give DATA_DIR, or DATABASE_URL, as the service has it`,
    ]);
    expect(existsSync(folder)).toBe(false);
  });
});

function idOf(key: string): string {
  return key.slice(4, 12);
}
