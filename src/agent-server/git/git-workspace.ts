import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { type Request, Router } from 'express';
import type { GitChange, GitDiff } from '../../agent-protocol/git.js';
import type { AllowedPaths } from '../files/file-routes.js';
import { givenPath, HttpError, parseRequest } from '../http/http-errors.js';
import { gitPrepareSchema, type RepositoryPreparation } from './repository-preparation.js';
import { runGit } from './run-git.js';

/** git's own name for "no file at all": everything is new compared with it. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const MAX_DIFF_BYTES = 1_000_000;

/** What changed in a repository since its branch left the remote's. */
export class GitWorkspace {
  readonly #environment: Record<string, string>;
  readonly #wrapper: readonly string[];

  /** @param wrapper put before git: what a repository configures for git to run is the agent's to write */
  constructor(environment: Record<string, string>, wrapper: readonly string[]) {
    this.#environment = environment;
    this.#wrapper = wrapper;
  }

  /** Changed, new and deleted files below a folder, by path; none when it is in no repository. */
  async changes(folder: string, ref: string | null): Promise<GitChange[]> {
    const found = await stat(folder).catch(() => null);
    if (!found?.isDirectory() || (await this.#git(folder, ['rev-parse', '--git-dir'])) === null) {
      return [];
    }
    const base = await this.#base(folder, ref);
    // A rename is told as its two halves, as clients know it.
    const diff = [
      'diff',
      '--name-status',
      '-z',
      '--no-renames',
      '--no-ext-diff',
      '--relative',
      base,
      '--',
      '.',
    ];
    const [changed, untracked] = await Promise.all([
      this.#git(folder, diff),
      this.#git(folder, ['ls-files', '-z', '--others', '--exclude-standard', '--', '.']),
    ]);
    if (changed === null || untracked === null) {
      throw new HttpError(400, 'git cannot read this repository.');
    }
    const added = untracked.split('\0').filter((name) => name !== '');
    return [
      ...parseNameStatus(changed),
      ...added.map((name): GitChange => ({ status: 'ADDED', path: name })),
    ].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }

  /**
   * Both sides of one file.
   *
   * @throws HttpError 400 when it is in no repository or one side is too large
   */
  async diff(file: string, ref: string | null): Promise<GitDiff> {
    const folder = await existingFolder(path.dirname(file));
    if ((await this.#git(folder, ['rev-parse', '--git-dir'])) === null) {
      throw new HttpError(400, 'Path is not in a git repository');
    }
    const base = await this.#base(folder, ref);
    const name = path.relative(folder, file);
    const size = await this.#git(folder, ['cat-file', '-s', `${base}:./${name}`]);
    const original = size === null ? null : await this.#original(folder, `${base}:./${name}`, Number(size));
    return { modified: await modified(file), original };
  }

  async #original(folder: string, object: string, size: number): Promise<string | null> {
    requireSmall(size);
    return await this.#git(folder, ['cat-file', 'blob', object]);
  }

  /** What to compare with: the branch on the remote, else where it left the remote's default branch, else nothing. */
  async #base(folder: string, ref: string | null): Promise<string> {
    if (ref !== null) {
      const commit = await this.#commit(folder, ref);
      if (commit === null) {
        throw new HttpError(400, 'The ref does not exist in this repository.');
      }
      return commit;
    }
    const branch = (await this.#git(folder, ['rev-parse', '--abbrev-ref', 'HEAD']))?.trim();
    const own = branch ? await this.#commit(folder, `refs/remotes/origin/${branch}`) : null;
    if (own !== null) {
      return own;
    }
    const fork = await this.#git(folder, ['merge-base', 'HEAD', 'refs/remotes/origin/HEAD']);
    return fork?.trim() ?? EMPTY_TREE;
  }

  async #commit(folder: string, ref: string): Promise<string | null> {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
    return (await this.#git(folder, args))?.trim() ?? null;
  }

  async #git(folder: string, args: string[]): Promise<string | null> {
    return await runGit({ cwd: folder, environment: this.#environment, wrapper: this.#wrapper }, args);
  }
}

async function modified(file: string): Promise<string | null> {
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) {
    return null;
  }
  requireSmall(found.size);
  return await readFile(file, 'utf8');
}

function requireSmall(bytes: number): void {
  if (bytes > MAX_DIFF_BYTES) {
    throw new HttpError(400, 'The file is too large to be compared.');
  }
}

/** A deleted file's folder may be gone with it. */
async function existingFolder(folder: string): Promise<string> {
  const found = await stat(folder).catch(() => null);
  return found?.isDirectory() || path.dirname(folder) === folder
    ? folder
    : await existingFolder(path.dirname(folder));
}

/** `git diff --name-status -z --no-renames`: status and path in turns, each ended by a zero byte. */
function parseNameStatus(output: string): GitChange[] {
  const fields = output.split('\0');
  const changes: GitChange[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [status = '', changed = ''] = [fields[index], fields[index + 1]];
    changes.push({ status: STATUSES[status] ?? 'UPDATED', path: changed });
  }
  return changes;
}

const STATUSES: Record<string, GitChange['status']> = { A: 'ADDED', D: 'DELETED' };

interface GitRoutesOptions {
  paths: AllowedPaths;
  git: GitWorkspace;
  preparation: RepositoryPreparation;
}

/** `/api/git`; the path stands in the query or behind the route. */
export function gitRoutes({ paths, git, preparation }: GitRoutesOptions): Router {
  const router = Router();

  router.post('/prepare', async (request, response) => {
    response.json(await preparation.prepare(parseRequest(gitPrepareSchema, 'body', request.body)));
  });

  router.get(['/changes', '/changes/*path'], async (request, response) => {
    response.json(await git.changes(await paths.resolve(givenPath(request)), refOf(request)));
  });

  router.get(['/diff', '/diff/*path'], async (request, response) => {
    response.json(await git.diff(await paths.resolve(givenPath(request)), refOf(request)));
  });

  return router;
}

function refOf(request: Request): string | null {
  const { ref } = request.query;
  return typeof ref === 'string' && ref !== '' ? ref : null;
}
