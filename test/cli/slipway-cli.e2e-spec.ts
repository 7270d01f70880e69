import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runSlipway } from '../../src/cli/slipway-program.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { say, StartsClient } from '../support/starts-client.js';
import { useFolder } from '../support/use-folder.js';
import { useGitHosts } from '../support/use-git-hosts.js';

interface Run {
  status: number;
  stdout: string[];
  stderr: string[];
}

async function slipway(url: string, key: string | null, ...args: string[]): Promise<Run> {
  const run: Run = { status: -1, stdout: [], stderr: [] };
  const output = {
    result: (line: string) => run.stdout.push(line),
    note: (line: string) => run.stderr.push(line),
  };
  run.status = await runSlipway(args, output, () => ({ url, key, isLocal: false }));
  return run;
}

describe('slipway', () => {
  const { hosts, app } = useGitHosts({}, { sandboxBackend: new InProcessSandboxBackend() });
  let user: TestUser;

  beforeEach(async () => {
    user = await app.createUser();
  });

  afterEach(() => {
    hosts.clearFaults();
  });

  const run = async (...args: string[]): Promise<Run> => await slipway(app.url, user.key, ...args);
  const connect = async (): Promise<void> => {
    await app.as(user).post('/api/add-git-providers', hosts.tokens).expect(200);
  };
  const startedConversation = async (): Promise<{ id: string; sandboxId: string }> => {
    const client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-4217' });
    const task = await client.reached(await client.start(say('say hello')), 'READY');
    return { id: task.appConversationId, sandboxId: task.sandboxId };
  };

  describe('tasks', () => {
    it('says what the service says where there is no git host', async () => {
      expect(await run('tasks')).toMatchObject({ status: 1, stderr: ['slipway: No providers set.'] });
    });

    it('lists each task under the name that "run" takes', async () => {
      await connect();
      const { status, stdout } = await run('tasks', '--providers', 'github');

      expect(status).toBe(0);
      expect(stdout[0]).toMatch(/^TASK +KIND +TITLE$/);
      expect(stdout.slice(1).every((line) => /^github:[\w./-]+(#\d+)? +[A-Z_]+ /.test(line))).toBe(true);
    });

    it('says what is wrong with a filter', async () => {
      expect(await slipway(app.url, user.key, 'tasks', '--limit', 'many')).toMatchObject({
        status: 2,
        stderr: [expect.stringMatching(/^slipway: limit: .*number/)],
      });
      expect(await slipway(app.url, user.key, 'tasks', '--types', 'NOPE')).toMatchObject({
        status: 2,
        stderr: [expect.stringMatching(/^slipway: task_types: .*FAILING_CHECKS.*OPEN_PR/)],
      });
    });

    it('ends with a line for each host that failed', async () => {
      await connect();
      hosts.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });
      const { status, stdout, stderr } = await run('tasks', '--json');

      expect(status).toBe(0);
      expect(JSON.parse(stdout.join('')).length).toBeGreaterThan(0);
      expect(stderr).toEqual([expect.stringMatching(/^gitlab: error, rate_limited.*try again in 41 s$/)]);
    });

    it('says why each host failed where all did', async () => {
      await connect();
      hosts.github.injectFault({ kind: 'status', status: 500 });
      hosts.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });

      expect(await run('tasks', '--providers', 'github,gitlab')).toMatchObject({
        status: 1,
        stdout: [],
        stderr: [
          expect.stringMatching(
            /^slipway: No git provider gave a usable answer; github: unavailable.*; gitlab: rate_limited.*, try again in 41 s$/,
          ),
        ],
      });
    });

    it('says how old work is that is read again meanwhile', async () => {
      await connect();
      await run('tasks', '--providers', 'github');
      app.clock.advance(300_000);
      const { stderr } = await run('tasks', '--providers', 'github');

      expect(stderr).toEqual([expect.stringMatching(/^github: read 300 s ago, and being read again now$/)]);
    });
  });

  describe('run', () => {
    it('says what is wrong with a task that is not suggested', async () => {
      await connect();

      expect(await run('run', 'github:octo/none#1')).toMatchObject({
        status: 2,
        stderr: [expect.stringContaining('there is no suggested task github:octo/none#1')],
      });
    });

    it.each([
      ['https://github.com/octo/none/issues/1', 'github', 'OPEN_ISSUE'],
      ['https://gitlab.com/octo/none/-/merge_requests/1/diffs#note_7', 'gitlab', 'OPEN_PR'],
    ])('takes the page of what nothing suggests: %s', async (page, git_provider, task_type) => {
      await connect();

      // Without a model; what it is about was understood before that.
      expect((await run('run', page)).stderr.at(-1)).toMatch(/model/);
      const [start] = await app.dataSource.query<{ task: unknown }[]>(
        `SELECT request->'suggested_task' AS task FROM app_conversation_start_tasks WHERE user_id = $1`,
        [user.id],
      );
      expect(start?.task).toEqual({
        git_provider,
        task_type,
        repo: 'octo/none',
        issue_number: 1,
        title: '#1',
      });
    });

    it('takes the page of a suggested task, and nothing else of a host that it does not know', async () => {
      await connect();
      const [, listed = ''] = (await run('tasks', '--providers', 'github', '--types', 'OPEN_ISSUE')).stdout;
      const [, name = '', number = ''] = /^github:(\S+)#(\d+)/.exec(listed) ?? [];
      await run('run', `https://github.com/${name}/issues/${number}`);
      const [start] = await app.dataSource.query<{ title: string }[]>(
        `SELECT request->'suggested_task'->>'title' AS title FROM app_conversation_start_tasks WHERE user_id = $1`,
        [user.id],
      );
      expect(listed).toContain(start?.title);

      expect((await run('run', 'https://gitlab.example/octo/none/-/issues/1')).stderr).toEqual([
        expect.stringContaining('there is no suggested task octo/none#1'),
      ]);
    });

    it('fails with the reason of a start that fails', async () => {
      const { status, stderr } = await run('run', 'github:octo/app', 'say hello');

      expect(status).not.toBe(0);
      expect(stderr.at(-1)).toMatch(/^slipway: .*model/);
    });
  });

  it('watch shows what has happened, and ends where the agent rests now; sandboxes lists and stops its sandbox', async () => {
    const { id, sandboxId } = await startedConversation();
    expect(await run('watch', id)).toMatchObject({ status: 0 });
    await app
      .as(user)
      .post(`/api/v1/app-conversations/${id}/send-message`, {
        content: [{ type: 'text', text: 'and again' }],
        run: true,
      })
      .expect(200);

    const { status, stdout } = await run('watch', id);

    expect(status).toBe(0);
    expect(stdout).toEqual(expect.arrayContaining(['you: say hello', 'you: and again']));
    expect(stdout.at(-1)).toBe('— finished');

    const listed = JSON.parse((await run('sandboxes', 'list', '--json')).stdout.join(''));
    expect(listed).toEqual([expect.objectContaining({ id: sandboxId, status: 'RUNNING' })]);
    expect(listed[0]).not.toHaveProperty('session_api_key');
    expect(await run('sandboxes', 'stop', sandboxId)).toMatchObject({
      status: 0,
      stdout: [`stopped ${sandboxId}`],
    });
    expect((await run('sandboxes', 'list')).stdout[1]).toMatch(new RegExp(`^${sandboxId} +PAUSED `));
    expect(await run('sandboxes', 'stop', '--all')).toMatchObject({ status: 0, stdout: [] });
  });

  describe('keys', () => {
    it('are made, listed and revoked over the API', async () => {
      await app.as(app.admin).post('/api/v1/users', { email: 'ada@example.com' });
      const admin = (...args: string[]) => slipway(app.url, app.admin.key, ...args);
      const create = ['keys', 'create', '--user', 'ada@example.com', '--name', 'robot', '--scopes'];
      expect(await admin(...create, 'read,write')).toMatchObject({
        status: 2,
        stderr: [expect.stringMatching(/^slipway: scopes.*read.*run.*settings.*admin/)],
      });
      const { stdout: made } = await admin(...create, 'read,run');
      const { stdout } = await admin('keys', 'list', '--json', '--user', 'ada@example.com');
      const robot = JSON.parse(stdout.join('')).find(({ name }: { name: string }) => name === 'robot');
      expect(made[0]).toContain(robot.id);
      expect(robot.scopes).toEqual(['read', 'run']);
      const { stdout: table } = await admin('keys', 'list', '--user', 'ada@example.com');
      expect(table[0]).toMatch(/^ID +NAME +CREATED +EXPIRES +LAST USED +STATE$/);
      expect(table[1]).toMatch(new RegExp(`^${robot.id} +robot +[-\\dT:]+Z +never +never +active$`));

      const { stdout: own } = await run('keys', 'create', '--name', 'own');
      const { stdout: known } = await slipway(app.url, own[0] ?? '', 'keys', 'list');
      expect(known).toContainEqual(expect.stringMatching(/ own /));

      expect(await admin('keys', 'revoke', robot.id)).toMatchObject({ status: 0 });
      expect(await slipway(app.url, made[0] ?? '', 'tasks')).toMatchObject({ status: 4 });
    });

    it.each([[['create', '--admin']], [['reencrypt']]])('%j needs the database', async (args) => {
      expect(await run('keys', ...args)).toMatchObject({
        status: 2,
        stderr: [expect.stringContaining('needs the database')],
      });
    });
  });

  describe('support-bundle', () => {
    const before = process.cwd();
    const folder = useFolder();
    beforeEach(() => process.chdir(folder.path));
    afterEach(() => process.chdir(before));

    it('has versions, configuration without secrets, readiness and the log for an administrator', async () => {
      const { status, stdout } = await slipway(app.url, app.admin.key, 'support-bundle');

      expect(status).toBe(0);
      expect(stdout[0]).toMatch(/^slipway-support-\d{8}T\d{6}\.tgz$/);
      const content = gunzipSync(await readFile(stdout[0] ?? '')).toString('latin1');
      for (const name of ['versions.json', 'configuration.json', 'readiness.json', 'log.txt']) {
        expect(content).toContain(`slipway-support/${name}`);
      }
      expect(content).toContain('"name": "database"');
    });

    it('says why the service told nothing', async () => {
      const { status, stdout, stderr } = await run('support-bundle');

      expect(status).toBe(0);
      expect(stderr).toEqual([expect.stringContaining('without what the service says of itself')]);
      expect(gunzipSync(await readFile(stdout[0] ?? '')).toString('latin1')).toContain('"unavailable"');
    });
  });

  it.each([
    [['frob'], 2, 'there is no command frob: slipway --help lists them'],
    [['task'], 2, 'there is no command task: did you mean tasks?'],
    [['tasks', '--frob'], 2, 'unknown option'],
    [['watch'], 2, 'missing required argument'],
    [['sandboxes', 'stop'], 2, 'needs ids, or --all'],
    [['keys'], 2, 'a command is missing: there are create, list'],
    [['keys', 'frob'], 2, 'this command is not known: there are create, list'],
    [['watch', 'no-such'], 1, 'There is no conversation with this id'],
  ])('%j ends with %i', async (args, status, message) => {
    expect(await run(...args)).toMatchObject({ status, stderr: [expect.stringContaining(message)] });
  });

  it('tests a model, and says what to set', async () => {
    await app.as(user).post('/api/settings', { llm_model: 'nobody/x' }).expect(200);
    const { status, stdout, stderr } = await run('model', 'check');
    expect([status, stderr]).toEqual([0, []]);
    expect(stdout[0]).toMatch(/^CHECK +RESULT +DETAIL +SET$/);
    expect(stdout[1]).toMatch(/^reachable +no +The model nobody\/x needs the address of its provider/);
    const json = await run('model', 'check', 'none', '--json');
    expect([json.status, json.stderr.join()]).toEqual([
      1,
      expect.stringContaining("Profile 'none' not found"),
    ]);
  });

  it('ends with 4 for a key that is not accepted or missing, 3 for a service that is not there, 0 for help', async () => {
    const gone = await slipway('http://127.0.0.1:9', null, 'tasks');

    expect(await slipway(app.url, 'wrong', 'tasks')).toMatchObject({
      status: 4,
      stderr: [expect.stringMatching(/does not accept the key: set SLIPWAY_KEY/)],
    });
    expect(await slipway(app.url, null, 'tasks')).toMatchObject({
      status: 4,
      stderr: [expect.stringMatching(/needs a key: set SLIPWAY_KEY/)],
    });
    expect(gone).toMatchObject({ status: 3, stderr: [expect.stringContaining('cannot reach')] });
    const help = await run('--help');
    expect(help.status).toBe(0);
    expect(help.stdout.join('\n')).toContain('support-bundle');
  });
});

it.each<[string, string, object]>([
  [
    'why a host shows only a part of the work',
    '[]',
    { status: 0, stderr: ['github: partial, sso_required'] },
  ],
  [
    'that an address is not of a service, whatever it answers',
    '<!doctype html>',
    { status: 1, stdout: [], stderr: [expect.stringContaining('is SLIPWAY_URL right?')] },
  ],
])('says %s', async (_what, body, expected) => {
  const partial = 'github;status=partial;code=sso_required;count=0';
  const service = await RawServer.start((_request, response) => {
    response.setHeader('X-Provider-Status', partial).end(body);
  });
  const asked = await slipway(service.origin, null, 'tasks', '--json');
  await service.close();

  expect(asked).toMatchObject(expected);
});
