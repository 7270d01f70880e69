import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FakeServer } from '../../../../test/fakes/fake-server.js';
import { type GitHttpServer, startGitHttpServer } from '../../../../test/fakes/git-http-server.js';
import { toolEnvironment } from '../tool-view.js';
import { prepareRepository } from './repository-preparation.js';
import { RemoteAccess } from './remote-access.js';

const TOKEN = 'token-of-the-git-host';
const never = new AbortController().signal;

let folder: string;
let template: string;
let work: string;
let name: string;
let host: GitHttpServer;
let access: RemoteAccess;
let tests = 0;

/** The same commit in each repository, so that a copy of one clone is a clone of each. */
const begin = async (repository: string): Promise<string> =>
  await host.commit(repository, 'main', { 'a.txt': 'a' }, { date: '2026-01-01T00:00:00Z' });
const urlOf = (repository: string): string => `${host.origin}/${repository}.git`;
const place = () => ({
  view: { environment: { ...toolEnvironment(process.env), HOME: folder }, wrapper: [] },
  privateFolder: join(folder, 'private'),
});
const credentials = () => [{ origin: host.origin, username: 'user', password: TOKEN }];

beforeAll(async () => {
  host = await startGitHttpServer(`user:${TOKEN}`);
  folder = mkdtempSync(join(tmpdir(), 'remote-access-'));
  template = join(folder, 'work');
  await begin('team/template');
  await prepareRepository({
    ...place(),
    folder: template,
    branch: null,
    new_branch: 'fix',
    timeoutMs: 600_000,
    credentials: credentials(),
    url: urlOf('team/template'),
    identity: { name: 'Ada', email: 'ada@example.com' },
  });
});

beforeEach(async () => {
  tests += 1;
  name = `team/project-${tests}`;
  await begin(name);
  folder = mkdtempSync(join(tmpdir(), 'remote-access-'));
  work = join(folder, 'work');
  cpSync(template, work, { recursive: true });
  const config = join(work, '.git/config');
  writeFileSync(config, readFileSync(config, 'utf8').replace(urlOf('team/template'), urlOf(name)));
  access = new RemoteAccess({ ...place(), git: () => ({ credentials: credentials() }) });
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});

afterAll(async () => {
  await host.close();
  rmSync(dirname(template), { recursive: true, force: true, maxRetries: 10 });
});

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: work,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

function commit(file: string): string {
  writeFileSync(join(work, file), file);
  git('add', '.');
  git('commit', '-qm', file);
  return git('rev-parse', 'HEAD');
}

describe('push', () => {
  it('pushes a branch and updates its remote branch', async () => {
    const head = commit('b.txt');
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(await host.tip(name, 'fix')).toBe(head);
    expect(git('rev-parse', 'refs/remotes/origin/fix')).toBe(head);
    expect(git('config', '--list', '--local')).not.toContain(TOKEN);
    expect(readdirSync(join(folder, 'private'))).toEqual([]);
  });

  it('says once that the content of new files of Git LFS was not sent', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 9\n`;
    writeFileSync(join(work, 'model.bin'), pointer);
    commit('b.txt');
    const outcome = await access.push(work, 'fix', never);
    expect(outcome).toMatchObject({ ok: true, output: expect.stringContaining('Git LFS') });
    commit('c.txt');
    expect((await access.push(work, 'fix', never)).output).not.toContain('Git LFS');
  });

  it('reports why the server rejects a push', async () => {
    await host.commit(name, 'fix', { 'c.txt': 'by somebody else' });
    commit('b.txt');
    const outcome = await access.push(work, 'fix', never);
    expect(outcome).toMatchObject({ ok: false, output: expect.stringMatching(/rejected|fetch first/) });
  });

  it('has the service push elsewhere where the server denies it, and nowhere else', async () => {
    const asked: string[] = [];
    const elsewhere = async (...[, branch]: [string, string, AbortSignal]) => {
      asked.push(branch);
      return branch === 'fix'
        ? await Promise.resolve({ ok: true, timedOut: false, output: 'pushed to the fork' })
        : await Promise.reject(new Error('the service responded 409: it cannot be forked'));
    };
    access = new RemoteAccess({ ...place(), git: () => ({ credentials: credentials() }), elsewhere });
    commit('b.txt');
    git('branch', 'other');
    host.readOnly.add(name);
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true, output: 'pushed to the fork' });
    const refused = await access.push(work, 'other', never);
    expect(refused).toMatchObject({ ok: false, output: expect.stringMatching(/403[^]*cannot be forked/) });
    host.readOnly.delete(name);
    await host.commit(name, 'fix', { 'c.txt': 'by somebody else' });
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: false });
    expect(asked).toEqual(['fix', 'other']);
  });

  it('goes to a fork from then on', async () => {
    await host.fork(name, `${name}-fork`);
    const head = commit('b.txt');
    expect(await access.pushTo(urlOf(`${name}-fork`), work, 'fix', never)).toMatchObject({ ok: true });
    expect(await host.tip(`${name}-fork`, 'fix')).toBe(head);
    expect([...(await host.tips(name)).keys()]).toEqual(['main']);
    const next = commit('c.txt');
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(await host.tip(`${name}-fork`, 'fix')).toBe(next);
    expect(git('remote', 'get-url', 'origin')).toBe(urlOf(name));
  });

  it('runs no hooks, credential helpers or programs of the repository', async () => {
    const trap = join(folder, 'trap');
    writeFileSync(join(work, '.git/hooks/pre-push'), `#!/bin/sh\nenv > ${trap}\n`);
    chmodSync(join(work, '.git/hooks/pre-push'), 0o755);
    git('config', 'credential.helper', `!env > ${trap}; true`);
    git('config', `credential.${host.origin}.helper`, `!env > ${trap}; true`);
    git('config', 'core.sshCommand', `env > ${trap}`);
    git('config', 'core.askPass', `env > ${trap}`);
    writeFileSync(join(folder, '.gitconfig'), '[credential]\n\thelper = "!env > trap; true"\n');
    commit('b.txt');
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(readdirSync(folder)).not.toContain('trap');
  });

  it('sends its credentials to no other server, whatever the repository configures', async () => {
    const other = await FakeServer.start(() => ({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="x"' },
    }));
    commit('b.txt');
    git('config', `http.${host.origin}/.proxy`, other.origin);
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(other.requests).toEqual([]);
    git('config', `url.${other.origin}/.insteadOf`, `${host.origin}/`);
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: false });
    expect(other.requests.length).toBeGreaterThan(0);
    expect(JSON.stringify(other.requests)).not.toMatch(/authorization/i);
    await other.close();
  });
});

describe('a clone of a part', () => {
  it.each([
    [{ depth: 1 }, '2'],
    [{ filter: 'blob:none' }, '4'],
    [{ filter: 'tree:0' }, '4'],
  ] as const)('is fetched into and pushed from: %j', async (part, commits) => {
    const shared = Array.from({ length: 200 }, (_, line) => `line ${line}\n`).join('');
    await host.commit(name, 'main', { 'old.txt': shared });
    await host.commit(name, 'main', { 'old.txt': 'short' });
    rmSync(work, { recursive: true });
    const answer = await prepareRepository({
      ...place(),
      folder: work,
      branch: null,
      new_branch: 'fix',
      timeoutMs: 600_000,
      url: urlOf(name),
      credentials: credentials(),
      identity: { name: 'Ada', email: 'ada@example.com' },
      ...part,
    });
    expect(answer).toMatchObject({ ok: true, notices: [] });
    // The host may send it as a difference from the file that was left out.
    const news = await host.commit(name, 'main', { 'old.txt': `${shared}and more` });
    expect(await access.fetch(work, never)).toMatchObject({ ok: true });
    expect(git('rev-parse', 'origin/main')).toBe(news);
    expect(git('rev-list', '--count', 'origin/main')).toBe(commits);
    const head = commit('b.txt');
    expect(await access.push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(await host.tip(name, 'fix')).toBe(head);
    expect(git('fsck', '--connectivity-only', '--no-dangling')).toBe('');
    expect(readdirSync(join(folder, 'private'))).toEqual([]);
  });
});

describe('fetch', () => {
  it('fetches what others have pushed', async () => {
    const head = await host.commit(name, 'news', { 'c.txt': 'c' });
    const outcome = await access.fetch(work, never);
    expect(outcome).toMatchObject({
      ok: true,
      output: expect.stringContaining('refs/remotes/origin/news is'),
    });
    expect(git('rev-parse', 'origin/news')).toBe(head);
    expect(git('fsck', '--connectivity-only')).toBe('');
    expect(await access.fetch(work, never)).toMatchObject({ output: 'Nothing is new.' });
  });

  it('says why its repository did not take what was fetched', async () => {
    const before = git('rev-parse', 'origin/main');
    await host.commit(name, 'main', { 'c.txt': 'c' });
    // Left by a git that was killed.
    writeFileSync(join(work, '.git/packed-refs.lock'), '');
    mkdirSync(join(work, '.git/refs/remotes/origin'), { recursive: true });
    writeFileSync(join(work, '.git/refs/remotes/origin/main.lock'), '');
    const outcome = await access.fetch(work, never);
    expect(outcome).toMatchObject({ ok: false, output: expect.stringContaining('main.lock') });
    expect(git('rev-parse', 'origin/main')).toBe(before);
  });
});

describe('with credentials for one repository', () => {
  const bound = (mode: 'read' | 'write'): RemoteAccess => {
    const repository = urlOf(name);
    const own = credentials().map((credential) => ({ ...credential, repository }));
    return new RemoteAccess({ ...place(), git: () => ({ credentials: own, mode }) });
  };

  it('fetches from it and pushes to it', async () => {
    const head = commit('b.txt');
    expect(await bound('write').fetch(work, never)).toMatchObject({ ok: true });
    expect(await bound('write').push(work, 'fix', never)).toMatchObject({ ok: true });
    expect(await host.tip(name, 'fix')).toBe(head);
  });

  it('only fetches where it may not push', async () => {
    commit('b.txt');
    expect(await bound('read').fetch(work, never)).toMatchObject({ ok: true });
    const refused = { ok: false, output: expect.stringContaining('may not push') };
    expect(await bound('read').push(work, 'fix', never)).toMatchObject(refused);
    await expect(host.tip(name, 'fix')).rejects.toThrow('Command failed');
  });

  it.each(['team/secret', 'team/../team/secret', 'team%2f..%2fteam/secret', 'team/secret.git?x='])(
    'reaches no other repository of its server: %s',
    async (other) => {
      await host.commit('team/secret', 'main', { 's.txt': 's' });
      const url = `${host.origin}/${other}`;
      git('remote', 'set-url', 'origin', url);
      commit('b.txt');
      expect(await bound('write').fetch(work, never)).toMatchObject({ ok: false });
      expect(await bound('write').push(work, 'fix', never)).toMatchObject({ ok: false });
      expect(await bound('write').clone(url, join(folder, 'other'), never)).toMatchObject({ ok: false });
      await expect(host.tip('team/secret', 'fix')).rejects.toThrow('Command failed');
    },
  );
});
