import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { type GitHttpServer, startGitHttpServer } from '../../../../test/fakes/git-http-server.js';
import { startSeparateAgentServer, type SeparateAgentServer } from '../support/test-agent-server.js';

const run = promisify(execFile);
const TOKEN = 'token-of-the-git-host';
const HAS_GIT_LFS = spawnSync('git', ['lfs', 'version']).status === 0;

function modules(entries: Record<string, string>): string {
  return Object.entries(entries)
    .map(([name, url]) => `[submodule "${name}"]\n\tpath = ${name}\n\turl = ${url}\n`)
    .join('');
}

describe('a clone with what belongs to it', () => {
  let host: GitHttpServer;
  let other: GitHttpServer;
  let server: SeparateAgentServer;
  let bin: string;
  let lib: string;
  let deep: string;

  beforeAll(async () => {
    host = await startGitHttpServer(`user:${TOKEN}`);
    other = await startGitHttpServer(null);
    bin = await mkdtemp(path.join(tmpdir(), 'git-lfs-'));
    const environment = toolEnvironment(process.env);
    server = await startSeparateAgentServer({
      // Without the filters of Git LFS that its package configures for all of a machine.
      environment: { ...environment, GIT_CONFIG_NOSYSTEM: '1', PATH: `${bin}:${environment['PATH']}` },
    });
    deep = await host.commit('team/deep', 'main', { 'deep.txt': 'deep' });
    lib = await host.commit(
      'team/lib',
      'main',
      { 'lib.txt': 'lib', '.gitmodules': modules({ 'vendor/deep': '../deep.git' }) },
      { links: { 'vendor/deep': deep } },
    );
  });

  afterAll(async () => {
    await server.stop();
    await Promise.all([host.close(), other.close()]);
    await rm(bin, { recursive: true, maxRetries: 10 });
  });

  /** A repository with submodules: their addresses and commits by their paths. */
  const withModules = async (
    repository: string,
    entries: Record<string, string>,
    links: Record<string, string>,
  ): Promise<void> => {
    await host.commit(repository, 'main', { '.gitmodules': modules(entries) }, { links });
  };

  const prepare = async (repository: string, parts: object): Promise<{ body: unknown; folder: string }> => {
    const directory = repository.replaceAll('/', '-');
    const { status, body } = await server.client.post('/api/git/prepare', {
      url: `${host.origin}/${repository}.git`,
      directory,
      branch: null,
      username: 'user',
      password: TOKEN,
      identity: null,
      ...parts,
    });
    expect(status).toBe(200);
    return { body, folder: path.join(server.workspace, directory) };
  };

  it('has its submodules, nested ones too, when they are asked for', async () => {
    const again = `${host.origin}/team/lib.git`;
    const entries = { 'libs/lib': '../lib.git', deep: `git@127.0.0.1:team/deep.git`, again };
    await withModules('team/app', entries, { 'libs/lib': lib, deep, again: lib });
    const { body, folder } = await prepare('team/app', { submodules: true });
    expect(body).toMatchObject({ ok: true, notices: [] });
    expect(await readFile(path.join(folder, 'libs/lib/lib.txt'), 'utf8')).toBe('lib');
    expect(await readFile(path.join(folder, 'libs/lib/vendor/deep/deep.txt'), 'utf8')).toBe('deep');
    expect(await readFile(path.join(folder, 'deep/deep.txt'), 'utf8')).toBe('deep');
    expect((await run('git', ['status', '--porcelain'], { cwd: folder })).stdout).toBe('');
    const { stdout } = await run('git', ['submodule', 'status', '--recursive'], { cwd: folder });
    expect(stdout.match(/[0-9a-f]{40}/g)).toEqual([lib, deep, deep, lib, deep]);
    const found = await run('grep', ['-rlF', TOKEN, server.folder]).catch(
      (failure: { code: number }) => failure.code,
    );
    expect(found).toBe(1);
  });

  it('has them although the clock of the machine is set forward meanwhile', async () => {
    await withModules('team/late', { deep: '../deep.git' }, { deep });
    const now = Date.now;
    let hours = 0;
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000 * (hours += 1));
    const { body } = await prepare('team/late', { submodules: true }).finally(() => clock.mockRestore());
    expect(body).toMatchObject({ ok: true, notices: [] });
  });

  it('has none of them by default', async () => {
    await withModules('team/plain', { lib: '../lib.git' }, { lib });
    const { body, folder } = await prepare('team/plain', {});
    expect(body).toMatchObject({ ok: true, notices: [] });
    expect(await readdir(path.join(folder, 'lib'))).toEqual([]);
  });

  it('is there even where a submodule is not, and says so', async () => {
    const links = { gone: deep, lost: lib, fine: deep };
    const entries = { gone: '../none.git', lost: '../deep.git', fine: '../deep.git' };
    await withModules('team/partial', entries, links);
    const { body, folder } = await prepare('team/partial', { submodules: true });
    expect(body).toMatchObject({ ok: true, branch: 'main' });
    expect(jsonList(body, 'notices')).toEqual([
      expect.stringContaining('The submodule gone could not be fetched: '),
      expect.stringContaining('The submodule lost could not be fetched: '),
    ]);
    expect(await readFile(path.join(folder, 'fine/deep.txt'), 'utf8')).toBe('deep');
  });

  it('asks no server but its own for submodules, and no file', async () => {
    const secret = await other.commit('team/secret', 'main', { 'secret.txt': 'secret' });
    const marker = path.join(server.folder, 'run-by-submodule');
    const addresses = [
      `${other.origin}/team/secret.git`,
      'http://127.0.0.1:1/a',
      'http://169.254.169.254/latest/meta-data',
      `${host.origin.replace('127.0.0.1', 'user@169.254.169.254#')}/a`,
      'file:///etc',
      server.workspace,
      `ext::sh -c "touch ${marker}"`,
      `-u./touch ${marker}`,
      'git://127.0.0.1/team/deep',
      'ssh://git@127.0.0.1/team/none',
    ];
    const entries = Object.fromEntries(addresses.map((url, index) => [`s${index}`, url]));
    const links = Object.fromEntries(Object.keys(entries).map((name) => [name, secret]));
    await withModules('team/hostile', entries, links);
    const asked = host.requests.length;
    const { body, folder } = await prepare('team/hostile', { submodules: true });
    expect(body).toMatchObject({ ok: true });
    expect(jsonList(body, 'notices')).toHaveLength(addresses.length);
    expect(other.requests).toEqual([]);
    const urls = host.requests.slice(asked).map(({ url }) => url.split('.git/')[0]);
    expect(new Set(urls)).toEqual(new Set(['/team/hostile', '/team/none/info/refs?service=git-upload-pack']));
    expect(await readdir(server.folder)).not.toContain('run-by-submodule');
    for (const name of Object.keys(entries)) {
      expect(await readdir(path.join(folder, name))).toEqual([]);
    }
    expect(JSON.stringify(jsonAt(body, 'notices'))).not.toContain(TOKEN);
  });

  it('writes nowhere but into itself', async () => {
    const text = [
      ['..', '../escape'],
      ['../../hooks', 'fine'],
      ['a', '.git/hooks'],
      ['-b', '-c'],
      ['d', '/tmp/x'],
    ]
      .map(([name, at]) => `[submodule "${name}"]\n\tpath = ${at}\n\turl = ../deep.git\n`)
      .join('');
    await host.commit('team/paths', 'main', { '.gitmodules': text }, { links: { fine: deep } });
    const { body, folder } = await prepare('team/paths', { submodules: true });
    expect(body).toMatchObject({ ok: true });
    expect(await readdir(path.join(folder, 'fine'))).toEqual([]);
    expect(await readdir(server.workspace)).not.toContain('escape');
  });

  it('is bounded, and what is said of it', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `m${index}`);
    const entries = Object.fromEntries(names.map((name) => [name, 'https://elsewhere.example.com/a']));
    const links = Object.fromEntries(names.map((name) => [name, deep]));
    await withModules('team/many', entries, links);
    const { body } = await prepare('team/many', { submodules: true });
    const notices = jsonList(body, 'notices');
    expect(notices).toHaveLength(11);
    expect(notices[0]).toContain('50 are fetched at most');
    expect(notices.at(-1)).toBe('There are 41 more notes about submodules.');
  });

  const LFS = { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n' };
  const gitLfs = async (program: string): Promise<void> => {
    await writeFile(path.join(bin, 'git-lfs'), `#!/bin/bash\n${program}\n`, { mode: 0o755 });
  };

  it('says that Git LFS is not there', async () => {
    await gitLfs('exit 127');
    const pointer = host.keepLarge('large');
    await host.commit('team/large', 'main', { ...LFS, 'model.bin': pointer });
    const { body, folder } = await prepare('team/large', { lfs: true });
    await rm(path.join(bin, 'git-lfs'));

    expect(body).toMatchObject({ ok: true, notices: [expect.stringContaining('Git LFS is not installed')] });
    expect(await readFile(path.join(folder, 'model.bin'), 'utf8')).toBe(pointer);
    const without = await prepare('team/lib', { lfs: true });
    expect(without.body).toMatchObject({ ok: true, notices: [] });
  });

  (HAS_GIT_LFS ? describe : describe.skip)('with Git LFS', () => {
    it('has its files from its own server alone, whatever the repository says', async () => {
      await host.commit('team/fetched', 'main', {
        ...LFS,
        'model.bin': host.keepLarge('a large file'),
        '.lfsconfig': `[lfs]\n\turl = ${other.origin}/steal\n`,
      });
      const { body, folder } = await prepare('team/fetched', { lfs: true });

      expect(body).toMatchObject({ ok: true, notices: [] });
      expect(await readFile(path.join(folder, 'model.bin'), 'utf8')).toBe('a large file');
      expect(other.requests).toEqual([]);
      expect((await run('git', ['-C', folder, 'status', '--porcelain'])).stdout).toBe('');
    });

    it('says when the server does not have them', async () => {
      const pointer = host.keepLarge('here').replace(/sha256:\w+/, `sha256:${'a'.repeat(64)}`);
      await host.commit('team/lost', 'main', { ...LFS, 'model.bin': pointer });
      const { body, folder } = await prepare('team/lost', { lfs: true });

      expect(body).toMatchObject({ ok: true, notices: [expect.stringContaining('could not be fetched')] });
      expect(await readFile(path.join(folder, 'model.bin'), 'utf8')).toBe(pointer);
    });
  });
});
