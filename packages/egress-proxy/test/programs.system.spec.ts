import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type GitHttpServer, startGitHttpServer } from '../../../test/fakes/git-http-server.js';
import { ProxyWorld } from './support/proxy-world.js';
import { CREDENTIAL, denying, injection, PLACEHOLDER, SANDBOX, VALUE } from './support/sample-policy.js';

const run = promisify(execFile);

let world: ProxyWorld;
let git: GitHttpServer;
let port: number;
let folder: string;
let environment: NodeJS.ProcessEnv;

beforeEach(async () => {
  world = await ProxyWorld.start();
  ({ port } = await world.startTlsHost());
  git = await startGitHttpServer(`x-access-token:${VALUE}`);
  world.answer = (incoming, response) => void passTo(git.origin, incoming, response);
  folder = await mkdtemp(path.join(tmpdir(), 'egress-'));
  const authority = path.join(folder, 'authority.pem');
  await writeFile(authority, `${world.authority.certificate}\n${world.hostAuthority.certificate}\n`);
  environment = {
    PATH: process.env['PATH'],
    HOME: folder,
    https_proxy: `http://${SANDBOX}:${CREDENTIAL}@127.0.0.1:${world.port}`,
    http_proxy: `http://${SANDBOX}:${CREDENTIAL}@127.0.0.1:${world.port}`,
    GIT_SSL_CAINFO: authority,
    CURL_CA_BUNDLE: authority,
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.com',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.com',
  };
});

afterEach(async () => {
  await world.stop();
  await git.close();
  await rm(folder, { recursive: true, force: true });
});

/** A host's TLS before a server that has none. */
async function passTo(origin: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const onward = request(`${origin}${incoming.url}`, { method: incoming.method, headers: incoming.headers });
  incoming.pipe(onward);
  const [answer] = (await once(onward, 'response')) as [IncomingMessage];
  response.writeHead(answer.statusCode ?? 502, answer.headers);
  answer.pipe(response);
}

const repository = () => `https://git.example:${port}/ada/app.git`;
const withPlaceholder = () => repository().replace('https://', `https://x-access-token:${PLACEHOLDER}@`);

function allowGit(paths: string[]): void {
  world.allow({
    layers: [denying([{ host: 'git.example', port, paths, isOwn: true }])],
    injections: [injection({ hosts: [{ host: 'git.example', port, paths: ['/ada/app.git/*'] }] })],
  });
}

/** The test host keeps bodies for itself; git's have to go on. */
const STREAMED = ['-c', 'http.extraHeader=X-Stream: 1'];

describe('git', () => {
  it('clones and pushes by a placeholder, and its repository has no credential', async () => {
    allowGit(['/ada/app.git/*']);
    await git.commit('ada/app', 'main', { 'read.me': 'hello\n' });
    const clone = path.join(folder, 'clone');
    await run('git', [...STREAMED, 'clone', '--quiet', withPlaceholder(), clone], { env: environment });
    expect(await readFile(path.join(clone, 'read.me'), 'utf8')).toBe('hello\n');
    await writeFile(path.join(clone, 'read.me'), 'changed\n');
    await run('git', ['-C', clone, 'commit', '--quiet', '--all', '--message', 'test'], { env: environment });
    await run('git', [...STREAMED, '-C', clone, 'push', '--quiet', 'origin', 'HEAD:refs/heads/work'], {
      env: environment,
    });
    expect([...(await git.tips('ada/app')).keys()].toSorted()).toEqual(['main', 'work']);
    expect(await readFile(path.join(clone, '.git/config'), 'utf8')).not.toContain(VALUE);
    const reported = await world.reported();
    expect(new Set(reported.map(({ method, denied }) => `${method} ${denied}`))).toEqual(
      new Set(['GET null', 'POST null']),
    );
  });

  it('says why a push is denied', async () => {
    allowGit(['/ada/app.git/info/refs', '/ada/app.git/git-upload-pack']);
    await git.commit('ada/app', 'main', { 'read.me': 'hello\n' });
    const clone = path.join(folder, 'clone');
    await run('git', [...STREAMED, 'clone', '--quiet', withPlaceholder(), clone], { env: environment });
    const push = run('git', [...STREAMED, '-C', clone, 'push', 'origin', 'HEAD:refs/heads/work'], {
      env: environment,
    });
    await expect(push).rejects.toMatchObject({ stderr: expect.stringMatching(/403/) });
    expect([...(await git.tips('ada/app')).keys()]).toEqual(['main']);
  });

  it('says why a repository cannot be read', async () => {
    allowGit(['/ada/app.git/*']);
    const other = `https://git.example:${port}/eve/gist.git`;
    await expect(
      run('git', ['clone', '--quiet', other, path.join(folder, 'clone')], { env: environment }),
    ).rejects.toMatchObject({
      stderr: expect.stringMatching(
        /remote: Slipway's egress proxy denied git\.example:\d+ \(path\): [^]*403/,
      ),
    });
    const stranger = repository().replace('https://', 'https://eve:ghp_strangersToken@');
    await expect(run('git', ['ls-remote', stranger], { env: environment })).rejects.toMatchObject({
      stderr: expect.stringContaining('only credentials of this sandbox may be used there'),
    });
  });
});

describe('curl', () => {
  it('is told why a host is denied, and by whom', async () => {
    world.allow({ layers: [denying([])] });
    const { stdout } = await run('curl', ['--silent', '--include', 'http://denied.example/'], {
      env: environment,
    });
    expect(stdout).toMatch(
      /^HTTP\/1\.1 403 Forbidden\r\n[^]*X-Slipway-Egress: denied; reason=rule[^]*no rule of this sandbox allows it/,
    );
    const tunnel = run('curl', ['--silent', '--show-error', 'https://denied.example/'], { env: environment });
    await expect(tunnel).rejects.toMatchObject({ stderr: expect.stringContaining('403') });
  });

  it('speaks through opened TLS and through a tunnel, though it would rather speak HTTP/2', async () => {
    world.answer = (incoming, response) => response.end(`got ${incoming.headers.authorization}`);
    for (const injections of [[], [injection({ hosts: [{ host: 'git.example', port }] })]]) {
      world.allow({ injections });
      const args = [
        '--silent',
        '--show-error',
        '--http2',
        '--header',
        `Authorization: Bearer ${PLACEHOLDER}`,
        `https://git.example:${port}/`,
      ];
      const { stdout } = await run('curl', args, { env: environment });
      expect(stdout).toBe(`got Bearer ${PLACEHOLDER}`);
    }
    expect(world.received.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${PLACEHOLDER}`,
      `Bearer ${VALUE}`,
    ]);
  });
});
