import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import request from 'supertest';
import { KeptChangesRepository } from '../../src/v1/app-conversations/kept-changes/kept-changes.repository.js';
import { ConversationUpdates } from '../../src/v1/events/store/event-store.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { RawServer } from '../support/raw-server.js';
import { until } from '../support/until.js';
import { useAgentSandboxes } from '../support/use-agent-sandboxes.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp();
const rows = new ConversationRows(app);
let user: TestUser;
let sandbox: Sandbox;

beforeEach(async () => {
  app.clock.stop();
  user = await app.createUser();
});

afterEach(() => app.clock.resume());

const get = (hex: string, place: string): request.Test =>
  request(app.url).get(`/api/v1/app-conversations/${hex}/git/${place}`).set(user.headers);

async function emit(event: 'stopping', sandboxId: string): Promise<void> {
  await app.app.get(SandboxEvents, { strict: false }).emit(event, sandboxId);
}

async function statusOf(sandboxId: string, status: string): Promise<void> {
  await app.dataSource.query('UPDATE sandboxes SET status = $2 WHERE id = $1', [sandboxId, status]);
}

const countOf = async (id: string): Promise<number> =>
  app.app.get(KeptChangesRepository, { strict: false }).countBy({ conversationId: id });

describe('what an agent changed', () => {
  const sandboxes = useAgentSandboxes(app);
  let workspace: string;
  let conversation: { id: string; hex: string };
  const write = (name: string, text: string): Promise<void> => writeFile(path.join(workspace, name), text);

  beforeEach(async () => {
    ({ sandbox, folder: workspace } = await sandboxes.open(user.id));
    const members = { sandboxId: sandbox.id, workingDir: workspace };
    conversation = await rows.conversation(user.id, members, FOLLOWED_ELSEWHERE);
    await write('a.txt', 'old\n');
    await write('gone.txt', 'gone\n');
    await sandboxes.agent.client.post('/api/bash/execute_bash_command', {
      command: 'git init && git add . && git -c user.name=a -c user.email=a@b commit -m first',
      cwd: workspace,
    });
    await write('a.txt', 'new\n');
    await mkdir(path.join(workspace, 'src'));
    await write('src/b.txt', 'a secret: hush-hush-51802\n');
    await rm(path.join(workspace, 'gone.txt'));
  });

  const end = (): void =>
    app.app
      .get(ConversationUpdates, { strict: false })
      .emit(conversation.id, { state: { executionStatus: 'finished' } });

  it('is kept when its run ends, with the names of all files, and shown with its time until that runs again', async () => {
    const { hex, id } = conversation;
    const files = (below: string): request.Test =>
      request(app.url).get(`/api/v1/app-conversations/${hex}/files?path=${below}`).set(user.headers);
    const live = (await get(hex, 'changes?path=.').expect(200)).body;
    const liveFiles = await files('.').expect(200);
    const as_of = new Date(app.clock.now()).toISOString();
    end();
    await copied(id, as_of);
    await statusOf(sandbox.id, 'PAUSED');

    const listed = await get(hex, 'changes?path=.').expect(200);
    expect(listed.body).toEqual([
      { status: 'UPDATED', path: 'a.txt', as_of },
      { status: 'DELETED', path: 'gone.txt', as_of },
      { status: 'ADDED', path: 'src/b.txt', as_of },
    ]);
    expect(live).toEqual(
      listed.body.map(({ status, path: name }: Record<string, string>) => ({ status, path: name })),
    );
    expect((await get(hex, `changes?path=${workspace}/src`).expect(200)).body).toEqual([
      { status: 'ADDED', path: 'b.txt', as_of },
    ]);
    for (const name of ['a.txt', `${workspace}/a.txt`]) {
      expect((await get(hex, `diff?path=${name}`).expect(200)).body).toEqual({
        original: 'old\n',
        modified: 'new\n',
        as_of,
      });
    }
    expect((await get(hex, 'diff?path=gone.txt').expect(200)).body).toEqual({
      original: 'gone\n',
      modified: '',
      as_of,
    });
    // Nothing was kept of these.
    await get(hex, 'diff?path=other.txt&resume=false').expect(409);
    await get(hex, 'changes?path=.&ref=HEAD&resume=false').expect(409);

    const keptFiles = await files('.').expect(200);
    expect(liveFiles.body).toEqual(expect.arrayContaining(['a.txt', 'src/b.txt']));
    expect(keptFiles.body).toEqual(liveFiles.body);
    expect([liveFiles, keptFiles].map(({ headers }) => headers['last-modified'])).toEqual([
      undefined,
      new Date(as_of).toUTCString(),
    ]);
    expect((await files(`${workspace}/src`).expect(200)).body).toEqual(['b.txt']);
    expect((await files('sr').expect(200)).body).toEqual([]);
    await files('/etc').expect(409);
    await files('..').expect(409);

    const stored = await app.dataSource.query<{ paths: unknown }[]>(
      'SELECT * FROM kept_changes WHERE conversation_id = $1',
      [id],
    );
    expect(stored).toHaveLength(1);
    expect(JSON.stringify(stored)).not.toContain('hush-hush');
    expect(stored[0]?.paths).not.toContain('a.txt');

    await statusOf(sandbox.id, 'RUNNING');
    expect((await get(hex, 'changes?path=.').expect(200)).body).toEqual(live);
    await request(app.url).delete(`/api/v1/app-conversations/${hex}`).set(user.headers).expect(200);
    expect(await countOf(id)).toBe(0);
  });

  it('is kept again after the next run', async () => {
    const { id, hex } = conversation;
    end();
    await until(async () => (await countOf(id)) === 1);

    await write('a.txt', 'newer\n');
    app.clock.advance(60_000);
    const as_of = new Date(app.clock.now()).toISOString();
    end();
    await copied(id, as_of);
    await statusOf(sandbox.id, 'ERROR');
    expect((await get(hex, 'diff?path=a.txt').expect(200)).body).toEqual({
      original: 'old\n',
      modified: 'newer\n',
      as_of,
    });
  });

  it('is kept when its sandbox stops, and has the newest files where there are too many', async () => {
    await mkdir(path.join(workspace, 'many'));
    for (let index = 0; index < 210; index += 1) {
      const name = path.join(workspace, `many/${String(index).padStart(3, '0')}`);
      await writeFile(name, `${index}`);
      // The first ones are the newest.
      await utimes(name, 1_700_000_000 - index, 1_700_000_000 - index);
    }
    await emit('stopping', sandbox.id);
    await statusOf(sandbox.id, 'PAUSED');

    const { body } = await get(conversation.hex, 'changes?path=many').expect(200);
    const names = body.map(({ path: name }: { path: string }) => name);
    expect(names).toHaveLength(198);
    expect([names[0], names.at(-1)]).toEqual(['000', '197']);
  });
});

async function copied(id: string, asOf: string): Promise<void> {
  await until(async () => {
    const kept = await app.app
      .get(KeptChangesRepository, { strict: false })
      .findOneBy({ conversationId: id });
    return kept?.asOf.toISOString() === asOf;
  });
}

describe('what a hostile agent server says of it', () => {
  let server: RawServer;
  let list: unknown;
  let diff: unknown;
  let diffsAsked: number;
  /** Of commands; null: it has none. */
  let command: unknown;

  beforeEach(async () => {
    [diffsAsked, command] = [0, null];
    server = await RawServer.start((incoming, response) => {
      const isDiff = incoming.url?.startsWith('/api/git/diff') === true;
      diffsAsked += isDiff ? 1 : 0;
      const isList = incoming.url?.startsWith('/api/git/changes') === true;
      const answer = isDiff ? diff : isList ? list : command;
      response.writeHead(answer === null ? 404 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
    sandbox = await rows.sandbox(user.id, { address: server.origin });
  });

  afterEach(() => server.close());

  const kept = async (): Promise<{ hex: string; body: unknown }> => {
    const { hex } = await rows.conversation(user.id, { sandboxId: sandbox.id }, FOLLOWED_ELSEWHERE);
    await emit('stopping', sandbox.id);
    await statusOf(sandbox.id, 'PAUSED');
    return { hex, body: (await get(hex, 'changes?path=.&resume=false')).body };
  };

  it.each<[string, unknown, unknown[]]>([
    ['is no list', { path: 'a', status: 'ADDED' }, []],
    [
      'has members of other kinds',
      [7, null, { path: 7, status: 'ADDED' }, { path: 'a', status: 'EVIL' }],
      [],
    ],
    ['leads elsewhere', [{ path: '../../etc/passwd', status: 'ADDED' }], []],
    ['has a name of ten thousand characters', [{ path: 'a'.repeat(10_000), status: 'ADDED' }], []],
    [
      'has more members',
      [{ path: 'a\0', status: 'ADDED', more: 'x' }],
      [{ path: 'a\u{fffd}', status: 'ADDED' }],
    ],
  ])('%s', async (_, given, expected) => {
    [list, diff] = [given, { original: '', modified: 7 }];
    const { body } = await kept();
    expect(body).toEqual(expected.map((each) => Object.assign({}, each, { as_of: expect.any(String) })));
  });

  it('keeps no names of files where these are not told', async () => {
    list = [];
    const { hex } = await kept();
    const files = request(app.url).get(`/api/v1/app-conversations/${hex}/files`).set(user.headers);
    expect((await files.expect(409)).body).toMatchObject({ code: 'sandbox_not_running' });
  });

  it('keeps nothing of a list beyond its bounds', async () => {
    list = Array.from({ length: 70_000 }, () => 1);
    const { body } = await kept();
    expect(body).toMatchObject({ code: 'sandbox_not_running' });
  });

  it('keeps a file without its text where that is too large', async () => {
    list = [{ path: 'large.txt', status: 'ADDED' }];
    diff = { original: '', modified: 'x'.repeat(3 * 1024 * 1024) };
    const { hex, body } = await kept();
    expect(body).toMatchObject([{ path: 'large.txt' }]);
    await get(hex, 'diff?path=large.txt&resume=false').expect(409);
  });

  it('reads no more texts once it has read sixteen megabytes of them, kept or not', async () => {
    list = Array.from({ length: 40 }, (_, index) => ({ path: `${index}`, status: 'ADDED' }));
    diff = { original: '', modified: 'x'.repeat(3 * 1024 * 1024) };
    command = { id: 'a', items: [{ kind: 'BashOutput', order: 0, exit_code: 0, stdout: '' }] };
    const { body } = await kept();
    expect(body).toHaveLength(40);
    // Each is read up to two megabytes, and four at a time.
    expect(diffsAsked).toBeGreaterThanOrEqual(8);
    expect(diffsAsked).toBeLessThan(12);
  });
});

it('is kept of a hundred conversations of a user', async () => {
  const repository = app.app.get(KeptChangesRepository, { strict: false });
  const made = await app.dataSource.query<{ id: string }[]>(
    `INSERT INTO app_conversations (id, user_id, sandbox_id, sandbox_generation, working_dir)
     SELECT gen_random_uuid(), $1, 'none', 1, '/workspace' FROM generate_series(1, 101) RETURNING id`,
    [user.id],
  );
  for (const [index, { id }] of made.entries()) {
    await repository.keep(id, new Date(1_700_000_000_000 + index), { files: [], paths: null });
  }
  expect(await repository.countBy({ userId: user.id })).toBe(100);
  expect(await countOf(made[0]?.id ?? '')).toBe(0);
});
