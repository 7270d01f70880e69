import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { type GitHttpServer, startGitHttpServer } from '../../../test/fakes/git-http-server.js';
import { startSeparateAgentServer, useAgentServer } from './support/test-agent-server.js';

const run = promisify(execFile);
const IDENTITY = { name: 'Ada', email: 'ada@example.com' };
const TOKEN = 'token-of-the-git-host';
const NOBODY = { username: null, password: null, identity: null };

const server = useAgentServer(startSeparateAgentServer);
let host: GitHttpServer;
let url: string;
/** Of its branch main. */
let tip: string;

beforeAll(async () => {
  host = await startGitHttpServer(`user:${TOKEN}`);
  tip = await host.commit('team/project', 'main', { 'a.txt': 'a' });
  await host.commit('team/project', 'feature/x', { 'b.txt': 'b' });
  url = `${host.origin}/team/project.git`;
});

afterAll(() => host.close());

async function prepare(directory: string, members: Record<string, unknown> = {}): Promise<unknown> {
  const { status, body } = await server.client.post('/api/git/prepare', {
    url,
    directory,
    branch: null,
    username: 'user',
    password: TOKEN,
    identity: IDENTITY,
    ...members,
  });
  expect(status).toBe(200);
  return body;
}

const git = async (directory: string, ...args: string[]) =>
  (await run('git', args, { cwd: path.join(server.workspace, directory) })).stdout.trim();

const configOf = async (directory: string) =>
  await readFile(path.join(server.workspace, directory, '.git/config'), 'utf8');

const push = async (directory: string, change: object = {}): Promise<{ status: number; body: unknown }> =>
  await server.client.post('/api/git/push', {
    url,
    directory: path.join(server.workspace, directory),
    branch: null,
    username: 'user',
    password: TOKEN,
    ...change,
  });

describe('POST /api/git/prepare', () => {
  it('clones with credentials that are stored nowhere', async () => {
    const answer = await prepare('cloned');
    expect(answer).toEqual({
      ok: true,
      failure: null,
      output: expect.stringContaining('Cloning into'),
      head: tip,
      branch: 'main',
      notices: [],
    });
    expect(await readFile(path.join(server.workspace, 'cloned/a.txt'), 'utf8')).toBe('a');
    const config = await configOf('cloned');
    expect(config).toContain(`url = ${url}\n`);
    expect(config).toContain(`email = ${IDENTITY.email}\n`);
    const { stdout } = await run('grep', ['-rlF', TOKEN, server.folder]).catch((failure) => failure);
    expect(stdout).toBe('');
  });

  // https://github.com/opendevstack/ods-pipeline/issues/683
  it('clones from, and pushes to, a server that takes bearer tokens alone', async () => {
    const strict = await startGitHttpServer((presented) => presented === TOKEN);
    try {
      await strict.commit('team/project', 'main', { 'a.txt': 'a' });
      const bearer = { url: `${strict.origin}/team/project.git`, bearer: `${strict.origin}/team` };
      expect(await prepare('strict', { ...bearer, new_branch: 'work' })).toMatchObject({ ok: true });
      expect(await configOf('strict')).not.toContain(TOKEN);
      await git('strict', 'commit', '-q', '--allow-empty', '-m', 'b');
      expect((await push('strict', bearer)).body).toMatchObject({ ok: true, branch: 'work' });
      expect(await strict.tip('team/project', 'work')).toBe(await git('strict', 'rev-parse', 'HEAD'));
    } finally {
      await strict.close();
    }
  });

  it('checks out a branch, and creates one', async () => {
    expect(await prepare('branch', { branch: 'feature/x' })).toMatchObject({ ok: true, branch: 'feature/x' });
    const made = await prepare('made', { new_branch: 'openhands-workspace-1' });
    expect(made).toMatchObject({ ok: true, branch: 'openhands-workspace-1' });
    expect(jsonText(made, 'head')).toBe(tip);
  });

  // renamed default branches: HEAD names a branch that is gone, and the clone was an empty folder.
  it.each([
    [['main', 'dev'], 'main'],
    [['master', 'dev'], 'master'],
    [['older', 'newer'], 'newer'],
  ])('takes one of %j where the default branch does not exist', async (branches, taken) => {
    const repository = `team/${branches.join('-')}`;
    const tips = new Map<string, string>();
    for (const [age, name] of branches.toReversed().entries()) {
      const date = `2026-01-0${9 - age}T00:00:00Z`;
      tips.set(name, await host.commit(repository, name, { 'b.txt': name }, { date }));
    }
    await host.nameDefault(repository, 'trunk');
    const answer = await prepare(taken, { url: `${host.origin}/${repository}.git` });
    expect(answer).toMatchObject({
      ok: true,
      branch: taken,
      head: tips.get(taken),
      notices: [expect.stringContaining(`trunk, does not exist: ${taken} is checked out`)],
    });
    expect(await git(taken, 'rev-parse', 'origin/HEAD')).toBe(tips.get(taken));
  });

  it('clones a repository whose own history is cut', async () => {
    await host.commit('team/shallow', 'main', { 'a.txt': 'one' });
    await host.commit('team/shallow', 'main', { 'a.txt': 'two' });
    await host.cutHistory('team/shallow', 'main');
    const from = `${host.origin}/team/shallow.git`;
    expect(await prepare('shallow', { url: from })).toMatchObject({ ok: true });
    expect((await git('shallow', 'log', '--format=%s')).split('\n')).toHaveLength(1);
    expect(await git('shallow', 'fsck', '--connectivity-only')).toBe('');
  });

  describe('of a part', () => {
    const DEEP = 'team/deep';

    beforeAll(async () => {
      await host.commit(DEEP, 'main', { 'a.txt': 'one', 'old/large.bin': 'x'.repeat(100_000) });
      await host.commit(DEEP, 'main', { 'a.txt': 'two', 'old/large.bin': 'y' });
      await host.commit(DEEP, 'side', { 'b.txt': 'side' });
    });

    const part = async (directory: string, members: Record<string, unknown>) => {
      const answer = await prepare(directory, { url: `${host.origin}/${DEEP}.git`, ...members });
      expect(answer).toMatchObject({ ok: true, notices: [] });
      expect(await readFile(path.join(server.workspace, directory, 'a.txt'), 'utf8')).toBe('two');
      expect(await git(directory, 'status', '--porcelain')).toBe('');
    };
    const missing = async (directory: string) =>
      (await git(directory, 'rev-list', '--objects', '--all', '--missing=print'))
        .split('\n')
        .filter((line) => line.startsWith('?')).length;

    it('takes the last commits of each branch', async () => {
      await part('cut', { depth: 1, new_branch: 'work' });
      expect((await git('cut', 'log', '--format=%s', 'HEAD')).split('\n')).toHaveLength(1);
      expect(await git('cut', 'rev-parse', 'origin/side')).toBe(await host.tip(DEEP, 'side'));
      expect(await git('cut', 'fsck', '--connectivity-only')).toBe('');
    });

    it('compares a branch whose beginning is cut off with the branch on the remote', async () => {
      await part('side', { depth: 1, branch: 'side' });
      const folder = path.join(server.workspace, 'side');
      expect(await server.client.get(`/api/git/changes?path=${folder}`)).toEqual([]);
    });

    it('leaves out what a filter says, but for the files of the commit', async () => {
      await part('filtered', { filter: 'tree:0' });
      expect((await git('filtered', 'log', '--format=%s', 'HEAD')).split('\n')).toHaveLength(2);
      expect(await missing('filtered')).toBeGreaterThan(0);
      expect(await git('filtered', 'config', 'remote.origin.partialCloneFilter')).toBe('tree:0');
    });

    it('takes everything from a server that knows no filters', async () => {
      host.unfiltered.add(DEEP);
      await part('unfiltered', { filter: 'blob:none' });
      expect(await missing('unfiltered')).toBe(0);
    });
  });

  it('says that a repository has no branch', async () => {
    await host.nameDefault('team/none-yet', 'trunk');
    const none = { url: `${host.origin}/team/none-yet.git` };
    const asked = await prepare('none-yet', { ...none, branch: 'trunk' });
    expect(asked).toMatchObject({ ok: false, failure: 'branch_not_found' });
    expect(await prepare('none-yet', none)).toMatchObject({
      ok: true,
      branch: 'trunk',
      head: null,
      notices: [expect.stringContaining('has no branch yet')],
    });
  });

  it('creates an empty repository without an address', async () => {
    const members = { url: null, username: null, password: null, new_branch: 'start' };
    expect(await prepare('empty', members)).toEqual({
      ok: true,
      failure: null,
      output: '',
      head: null,
      branch: 'start',
      notices: [],
    });
    expect(await git('empty', 'config', 'user.name')).toBe(IDENTITY.name);
  });

  it('can be repeated, also at the same time, and after it was killed half-way', async () => {
    await mkdir(path.join(server.workspace, '.new-again'));
    await writeFile(path.join(server.workspace, '.new-again/rest'), '');
    const [first, second] = await Promise.all([prepare('again'), prepare('again')]);
    expect(first).toMatchObject({ ok: true });
    expect(second).toEqual(first);
    await git('again', 'checkout', '-q', '-b', 'own-work');
    await git('again', 'tag', 'own-work');
    expect(await prepare('again')).toMatchObject({ ok: true, output: '', branch: 'own-work' });
    expect((await readdir(server.workspace)).filter((name) => name.startsWith('.new-'))).toEqual([]);
  });

  it.each([
    ['wrong credentials', { password: 'wrong-token-of-a-user' }, 'authentication'],
    ['an unknown branch', { branch: 'no-such-branch' }, 'branch_not_found'],
    ['an unknown repository', { url: '/team/none' }, 'repository_not_found'],
  ])('says that it failed for %s, and leaves nothing', async (_, members, failure) => {
    const target = 'url' in members ? new URL(members.url, url).href : url;
    const answer = await prepare('failed', { ...members, url: target });
    expect(answer).toMatchObject({ ok: false, failure, head: null, branch: null });
    expect(jsonText(answer, 'output')).not.toContain('token-of');
    expect((await readdir(server.workspace)).filter((name) => name.includes('failed'))).toEqual([]);
  });

  it('leaves folders with other content alone, and those outside', async () => {
    await mkdir(path.join(server.workspace, 'other'));
    await writeFile(path.join(server.workspace, 'other/file'), 'mine');
    expect(await prepare('other')).toMatchObject({ ok: false, failure: 'directory_not_empty' });
    for (const directory of ['/etc/x', '../x']) {
      const refused = await server.client.post('/api/git/prepare', {
        url,
        branch: null,
        directory,
        ...NOBODY,
      });
      expect(refused).toMatchObject({ status: 403 });
    }
  });

  it('checks a branch of a fork out, and knows what the fork is of', async () => {
    await host.fork('team/project', 'jane/project');
    const head = await host.commit('jane/project', 'feature/x', { 'c.txt': 'c' });
    await host.commit('team/project', 'main', { 'a.txt': 'newer' });
    const upstream = { url, branch: 'main' };
    const fork = `${host.origin}/jane/project.git`;
    const answer = await prepare('forked', { url: fork, branch: 'feature/x', upstream });
    expect(answer).toMatchObject({ ok: true, head, branch: 'feature/x', notices: [] });
    const config = await configOf('forked');
    expect(config.match(/url = .*/g)).toEqual([`url = ${fork}`, `url = ${url}`]);
    expect(config).not.toContain(TOKEN);
    expect(await git('forked', 'show', 'upstream/main:a.txt')).toBe('newer');
    const gone = { url, branch: 'gone' };
    expect(await prepare('alone', { url: fork, branch: 'feature/x', upstream: gone })).toMatchObject({
      ok: true,
      notices: ['The branch gone of upstream could not be fetched.'],
    });
  });

  it('checks out what the host keeps of a pull request whose fork is deleted, and pushes nothing', async () => {
    await host.fork('team/project', 'gone/project');
    const head = await host.commit('gone/project', 'main', { 'd.txt': 'd' });
    await host.keepRef('team/project', 'refs/pull/7/head', 'gone/project', 'main');
    await host.remove('gone/project');
    const no_push = 'the fork of pull request 7 is deleted';
    const answer = await prepare('kept', { branch: 'pull-7', ref: 'refs/pull/7/head', no_push });
    expect(answer).toMatchObject({ ok: true, head, branch: 'pull-7' });
    await expect(git('kept', 'push', 'origin', 'pull-7')).rejects.toThrow(no_push);
    expect((await push('kept')).body).toMatchObject({ ok: false, output: expect.stringContaining(no_push) });
    const missing = await prepare('missing', { branch: 'pull-8', ref: 'refs/pull/8/head' });
    expect(missing).toMatchObject({ ok: false, failure: 'branch_not_found' });
  });

  it('pushes the default branch to nothing but the fork that it was cloned from', async () => {
    await host.fork('team/project', 'joe/project');
    const fork = `${host.origin}/joe/project.git`;
    await prepare('default', { url: fork, upstream: { url, branch: 'main' } });
    await git('default', 'commit', '-q', '--allow-empty', '-m', 'more');
    const pushTo = async (to: string) => (await push('default', { url: to, to })).body;
    expect(await pushTo(url)).toMatchObject({ ok: false, output: expect.stringContaining('default branch') });
    expect(await pushTo(fork)).toMatchObject({ ok: true, branch: 'main' });
    expect(await host.tip('joe/project', 'main')).toBe(await git('default', 'rev-parse', 'HEAD'));
    host.readOnly.add('joe/project');
    expect(await pushTo(fork)).toMatchObject({ ok: false, denied: true });
  });

  it.each([
    ['url', 'http://user:secret@example.com/a'],
    ['url', 'ext::sh -c id'],
    ['branch', '--upload-pack=id'],
    ['new_branch', 'a b'],
    ['ref', 'refs/heads/main'],
    ['no_push', 'ext::sh -c id'],
    ['password', 'a\nhost=example.com'],
  ])('refuses a %s like %j', async (member, value) => {
    const body = { url, directory: 'd', branch: null, username: 'u', password: 'p', identity: null };
    const answer = await server.client.post('/api/git/prepare', { ...body, [member]: value });
    expect(answer).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', member] }] } });
    expect(JSON.stringify(jsonAt(answer.body, 'detail'))).not.toContain('secret');
  });
});

describe('POST /api/git/push', () => {
  const NAME = 'team/pushed';
  const commit = async (message: string) =>
    await git('pushed', 'commit', '-q', '--allow-empty', '-m', message);
  const pushed = async (change: object = {}) => {
    const { status, body } = await push('pushed', { url: `${host.origin}/${NAME}.git`, ...change });
    return { status, ...Object(body) };
  };

  beforeAll(async () => {
    await host.commit(NAME, 'main', { 'a.txt': 'a' });
    await prepare('pushed', { url: `${host.origin}/${NAME}.git`, new_branch: 'work' });
  });

  it('pushes the branch that is checked out, or the named one', async () => {
    await commit('b');
    expect(await pushed()).toMatchObject({ status: 200, ok: true, branch: 'work' });
    expect(await host.show(NAME, 'work', '%s')).toBe('b');
    await git('pushed', 'checkout', '-qb', 'other');
    await commit('c');
    await git('pushed', 'checkout', '-q', 'work');
    expect(await pushed({ branch: 'other' })).toMatchObject({ ok: true, branch: 'other' });
  });

  it('says why it cannot, without the credentials', async () => {
    const refused = await pushed({ password: 'wrong-token-of-the-host' });
    expect(refused).toMatchObject({ ok: false, branch: 'work' });
    expect(JSON.stringify(refused)).not.toContain('wrong-token-of-the-host');
    const none = 'There is no local branch none.';
    expect(await pushed({ branch: 'none' })).toMatchObject({ ok: false, output: none });
    expect(await pushed({ directory: server.workspace })).toMatchObject({ ok: false, branch: null });
    const elsewhere = await pushed({ directory: server.workspace, branch: 'work' });
    expect(elsewhere).toMatchObject({ ok: false, output: expect.stringContaining('in no repository') });
    expect(await pushed({ branch: '--all' })).toMatchObject({ status: 422 });
  });

  it('never pushes the default branch', async () => {
    await git('pushed', 'checkout', '-q', 'main');
    await commit('mine');
    const refused = { ok: false, branch: 'main', output: expect.stringContaining('default branch') };
    expect(await pushed()).toMatchObject({ status: 200, ...refused });
    expect(await pushed({ branch: 'main' })).toMatchObject(refused);
    expect(await host.show(NAME, 'main', '%s')).not.toBe('mine');
    await git('pushed', 'checkout', '-q', 'work');
  });
});
