import { execFile, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { Gate } from '../support/gate.js';
import { startListening, stopServer } from '../support/start-listening.js';

const run = promisify(execFile);
/** Path of the files of Git LFS. */
const LARGE = '/large-files/';
const HEAD_END = '\r\n\r\n';

interface CommitOptions {
  date?: string;
  /** Submodules: commit ids by path. */
  links?: Record<string, string>;
}

interface GitHttpServerOptions {
  /** Awaited before a push to a repository is answered. */
  onPush?: (repository: string) => Promise<void>;
  /** The page at an address, for browsers, which present nothing. */
  page?: (address: string) => Promise<string | null>;
}

/** Real repositories behind git's own HTTP protocol (git-http-backend(1) as CGI). */
export interface GitHttpServer {
  /** `http://127.0.0.1:PORT`, or with the address that was given. */
  origin: string;
  /** Addresses that were asked for, with what the client presented (`user:password`, or a bearer token), oldest first. */
  requests: { url: string; credentials: string | null }[];
  /** Holds answers back while it is closed. */
  gate: Gate;
  /** Puts a commit with these files on a branch of a repository (`owner/name`), which is made when it is new. */
  commit(
    repository: string,
    branch: string,
    files: Record<string, string>,
    options?: CommitOptions,
  ): Promise<string>;
  /** Keeps a file for Git LFS; returns the pointer that a commit has in its place. */
  keepLarge(content: string): string;
  /** Makes HEAD name a branch, which need not exist; makes the repository when it is new. */
  nameDefault(repository: string, branch: string): Promise<void>;
  /** Makes the repository a shallow one, whose history begins with the tip of a branch. */
  cutHistory(repository: string, branch: string): Promise<void>;
  /** Those that the credentials are no right to push to. */
  readOnly: Set<string>;
  /** Those that give no partial clones. */
  unfiltered: Set<string>;
  /** Copies a repository with all its branches. */
  fork(repository: string, fork: string): Promise<void>;
  /** Keeps a branch of a fork under another name, as hosts do for pull requests (`refs/pull/7/head`). */
  keepRef(repository: string, ref: string, fork: string, branch: string): Promise<void>;
  /** Deletes a repository. */
  remove(repository: string): Promise<void>;
  /** The commits at the tips of all branches, by name. */
  tips(repository: string): Promise<Map<string, string>>;
  /** Folder of the bare repository. */
  folder(repository: string): string;
  /** Commit at the tip of a branch. */
  tip(repository: string, branch: string): Promise<string>;
  /** The last commit of a branch in a format of git-log(1). */
  show(repository: string, branch: string, format: string): Promise<string>;
  close(): Promise<void>;
}

/**
 * @param credentials `user:password`, or a bearer token, that every request has to present, or whether those that it presents will do; null: none are needed
 * @param host where it listens
 */
export async function startGitHttpServer(
  credentials: string | ((presented: string | null) => boolean) | null,
  host = '127.0.0.1',
  { onPush = () => Promise.resolve(), page = () => Promise.resolve(null) }: GitHttpServerOptions = {},
): Promise<GitHttpServer> {
  const root = await mkdtemp(path.join(tmpdir(), 'git-http-'));
  const requests: GitHttpServer['requests'] = [];
  const gate = new Gate();
  const large = new Map<string, string>();
  const readOnly = new Set<string>();
  const unfiltered = new Set<string>();
  const server = createServer(async (request, response) => {
    await gate.pass();
    const shown = await page(request.url ?? '/');
    if (shown !== null) {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(shown);
      return;
    }
    const presented = presentedCredentials(request);
    requests.push({ url: request.url ?? '', credentials: presented });
    const isWelcome =
      typeof credentials === 'function' ? credentials(presented) : [null, presented].includes(credentials);
    if (!isWelcome) {
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const [, written] =
      /^\/(.+)\.git\/(?:git-|info\/refs\?service=git-)receive-pack$/.exec(request.url ?? '') ?? [];
    if (written !== undefined && readOnly.has(decodeURIComponent(written))) {
      response
        .writeHead(403, { 'Content-Type': 'text/plain' })
        .end('Write access to repository not granted.');
      return;
    }
    if (request.url?.endsWith('/info/lfs/objects/batch')) {
      await answerBatch(request, response, `http://${request.headers.host}${LARGE}`);
    } else if (request.url?.startsWith(LARGE)) {
      response.end(large.get(request.url.slice(LARGE.length)));
    } else {
      const [, name = '', route = ''] = /^\/(.+)\.git\/(.+)$/.exec(request.url ?? '') ?? [];
      const repository = decodeURIComponent(name);
      const options = { root, isFiltering: !unfiltered.has(repository) };
      serve(options, request, response, async () => {
        if (route === 'git-receive-pack') {
          await onPush(repository);
        }
      });
    }
  });
  const port = await startListening(server, 0, host);
  const bare = (repository: string): string => path.join(root, `${repository}.git`);
  const tips = async (repository: string): Promise<Map<string, string>> => {
    const format = '--format=%(refname:lstrip=2) %(objectname)';
    const { stdout } = await run('git', ['-C', bare(repository), 'for-each-ref', format, 'refs/heads']);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return new Map(lines.map((line) => line.split(' ', 2) as [string, string]));
  };
  /** Whether it was not there. */
  const create = async (repository: string): Promise<boolean> => {
    const isNew = !existsSync(bare(repository));
    if (isNew) {
      await run('git', ['init', '--quiet', '--bare', '--initial-branch', 'main', bare(repository)]);
    }
    return isNew;
  };
  const tip = async (repository: string, branch: string): Promise<string> =>
    (await run('git', ['-C', bare(repository), 'rev-parse', `refs/heads/${branch}`])).stdout.trim();
  return {
    gate,
    origin: `http://${host}:${port}`,
    requests,
    readOnly,
    unfiltered,
    fork: async (repository, fork) => {
      await run('git', ['clone', '--quiet', '--bare', bare(repository), bare(fork)]);
    },
    keepRef: async (repository, ref, fork, branch) => {
      const copied = `refs/heads/${branch}:${ref}`;
      await run('git', ['-C', bare(repository), 'fetch', '--quiet', bare(fork), copied]);
    },
    remove: async (repository) => {
      await rm(bare(repository), { recursive: true, force: true });
    },
    tip,
    tips,
    folder: bare,
    keepLarge: (content) => {
      const oid = hash('sha256', content);
      large.set(oid, content);
      return `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n`;
    },
    nameDefault: async (repository, branch) => {
      await create(repository);
      await writeFile(path.join(bare(repository), 'HEAD'), `ref: refs/heads/${branch}\n`);
    },
    cutHistory: async (repository, branch) => {
      await writeFile(path.join(bare(repository), 'shallow'), `${await tip(repository, branch)}\n`);
    },
    commit: async (repository, branch, files, { date, links = {} } = {}) => {
      const folder = bare(repository);
      const branches = (await create(repository)) ? new Map<string, string>() : await tips(repository);
      // A new branch goes off main, where there is one.
      const base = [branch, 'main'].find((name) => branches.has(name));
      const seconds = (date === undefined ? Date.now() : Date.parse(date)) / 1000;
      return importCommit(folder, [
        `commit refs/heads/${branch}\nmark :1`,
        `committer Ada <ada@example.com> ${Math.floor(seconds)} +0000`,
        data('test: a commit\n'),
        ...(base === undefined ? [] : [`from refs/heads/${base}^0`]),
        ...Object.entries(files).flatMap(([name, content]) => [
          `M 100644 inline ${JSON.stringify(name)}`,
          data(content),
        ]),
        ...Object.entries(links).map(([name, id]) => `M 160000 ${id} ${JSON.stringify(name)}`),
      ]);
    },
    show: async (repository, branch, format) =>
      (await run('git', ['-C', bare(repository), 'log', '-1', `--format=${format}`, branch])).stdout.trim(),
    close: async () => {
      await stopServer(server);
      await rm(root, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** A commit by git-fast-import(1), one process where a work tree, `git add`, `git commit` and `git push` start some thirty. */
async function importCommit(folder: string, commands: string[]): Promise<string> {
  const importing = run('git', ['-C', folder, 'fast-import', '--quiet', '--done']);
  importing.child.stdin?.end([...commands, 'get-mark :1', 'done\n'].join('\n'));
  return (await importing).stdout.trim();
}

function data(content: string): string {
  return `data ${Buffer.byteLength(content)}\n${content}`;
}

/** https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md */
async function answerBatch(
  request: IncomingMessage,
  response: ServerResponse,
  folder: string,
): Promise<void> {
  const objects = jsonList(JSON.parse(await text(request)), 'objects').map((object) => ({
    oid: jsonText(object, 'oid'),
    size: jsonAt(object, 'size'),
    actions: { download: { href: `${folder}${jsonText(object, 'oid')}` } },
  }));
  response.writeHead(200, { 'Content-Type': 'application/vnd.git-lfs+json' });
  response.end(JSON.stringify({ transfer: 'basic', objects }));
}

function presentedCredentials({ headers: { authorization = '' } }: IncomingMessage): string | null {
  const [, encoded] = /^Basic (.+)$/.exec(authorization) ?? [];
  const [, token = null] = /^Bearer (.+)$/.exec(authorization) ?? [];
  return encoded === undefined ? token : Buffer.from(encoded, 'base64').toString('utf8');
}

function serve(
  { root, isFiltering }: { root: string; isFiltering: boolean },
  request: IncomingMessage,
  response: ServerResponse,
  beforeAnswer: () => Promise<void>,
): void {
  const url = new URL(request.url ?? '/', 'http://git');
  const backend = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'tester',
      REMOTE_ADDR: '127.0.0.1',
      GIT_CONFIG_COUNT: '2',
      GIT_CONFIG_KEY_0: 'http.receivepack',
      GIT_CONFIG_VALUE_0: 'true',
      GIT_CONFIG_KEY_1: 'uploadpack.allowFilter',
      GIT_CONFIG_VALUE_1: String(isFiltering),
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(url.pathname),
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      ...(request.headers['content-encoding'] && {
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'],
      }),
      ...(request.headers['git-protocol'] && { GIT_PROTOCOL: String(request.headers['git-protocol']) }),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const chunks: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  backend.stdout.on('end', () => {
    beforeAnswer().then(
      () => answer(Buffer.concat(chunks), response),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  // A client that goes away ends the program's input early.
  backend.stdin.on('error', () => undefined);
  request.pipe(backend.stdin);
}

/** The header lines of a CGI program, then what it says. */
function answer(output: Buffer, response: ServerResponse): void {
  const end = output.indexOf(HEAD_END);
  const headers = output
    .subarray(0, Math.max(end, 0))
    .toString('latin1')
    .split('\r\n')
    .map((line) => line.split(/:\s*(.*)/s, 2) as [string, string]);
  const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
  response.writeHead(
    Number.parseInt(status, 10),
    Object.fromEntries(headers.filter(([name]) => name !== 'Status')),
  );
  response.end(output.subarray(end + HEAD_END.length));
}
