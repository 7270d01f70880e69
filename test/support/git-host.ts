import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { listenOnLoopback } from './listen-on-loopback.js';

const run = promisify(execFile);

/** Files of a branch by their names. */
type Files = Record<string, string>;

/** git's own server (git-http-backend(1)) behind real HTTP and basic authentication. */
export class GitHost {
  /** Requests with the right credentials, and all others. */
  readonly seen = { allowed: 0, refused: 0 };
  private readonly server: Server;

  private constructor(
    private readonly folder: string,
    private readonly authorization: string,
  ) {
    this.server = createServer((request, response) => this.serve(request, response));
  }

  static async start({ username, password }: { username: string; password: string }): Promise<GitHost> {
    const folder = await mkdtemp(path.join(tmpdir(), 'git-host-'));
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const host = new GitHost(folder, `Basic ${basic}`);
    await listenOnLoopback(host.server);
    return host;
  }

  get origin(): string {
    const address = this.server.address();
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  }

  /** Its address; the first branch is the default one. */
  async addRepository(name: string, branches: Record<string, Files>): Promise<string> {
    const bare = this.path(name);
    const [first = 'main'] = Object.keys(branches);
    await run('git', ['init', '--quiet', '--bare', '--initial-branch', first, bare]);
    await run('git', ['config', 'http.receivepack', 'true'], { cwd: bare });
    for (const [branch, files] of Object.entries(branches)) {
      await this.commit(name, branch, files);
    }
    return `${this.origin}/${name}.git`;
  }

  /** Adds a commit to a branch, as somebody else would. */
  async commit(name: string, branch: string, files: Files): Promise<string> {
    const work = await mkdtemp(path.join(this.folder, 'work-'));
    const git = async (...args: string[]) =>
      (await run('git', ['-c', 'user.name=Host', '-c', 'user.email=h@example.com', ...args], { cwd: work }))
        .stdout;
    await git('clone', '--quiet', this.path(name), '.');
    await git('checkout', '--quiet', '-B', branch, `origin/${branch}`).catch(() =>
      git('checkout', '--quiet', '-b', branch),
    );
    for (const [file, content] of Object.entries(files)) {
      await mkdir(path.dirname(path.join(work, file)), { recursive: true });
      await writeFile(path.join(work, file), content);
    }
    await git('add', '.');
    await git('commit', '--quiet', '-m', `change ${branch}`);
    await git('push', '--quiet', 'origin', branch);
    return (await git('rev-parse', 'HEAD')).trim();
  }

  /** The commit of a branch, null when there is none. */
  async head(name: string, branch: string): Promise<string | null> {
    const args = ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`];
    return await run('git', args, { cwd: this.path(name) }).then(
      ({ stdout }) => stdout.trim(),
      () => null,
    );
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
    });
    await rm(this.folder, { recursive: true, force: true });
  }

  private path(name: string): string {
    return path.join(this.folder, `${name}.git`);
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.headers.authorization !== this.authorization) {
      this.seen.refused += 1;
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    this.seen.allowed += 1;
    const url = new URL(request.url ?? '/', this.origin);
    const backend = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: this.folder,
        GIT_HTTP_EXPORT_ALL: '1',
        REMOTE_USER: 'user',
        REQUEST_METHOD: request.method,
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    request.pipe(backend.stdin);
    backend.stdin.on('error', () => undefined);
    const chunks: Buffer[] = [];
    backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    backend.once('close', () => answer(Buffer.concat(chunks), response));
  }
}

/** CGI: header lines, one of them perhaps the status, an empty line, the body. */
function answer(output: Buffer, response: ServerResponse): void {
  const end = output.indexOf('\r\n\r\n');
  const lines = output.toString('latin1', 0, Math.max(end, 0)).split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
  response.statusCode = Number.parseInt(status, 10);
  headers
    .filter(([name]) => name !== 'Status' && name !== '')
    .forEach(([name, value]) => {
      response.setHeader(name, value);
    });
  response.end(output.subarray(end + 4));
}
