import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { GitChange, GitDiff } from '../../agent-protocol/git.js';
import { HttpError } from '../http/http-error.js';
import { runGit } from './run-git.js';

/** The id that every repository knows for a tree without files: compared with it, everything is new. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const MAX_DIFF_BYTES = 1_000_000;
/** By the letters of `git diff --name-status`; every other one means `UPDATED`. */
const STATUSES: Record<string, GitChange['status']> = { A: 'ADDED', D: 'DELETED' };

/** What changed in a repository since its branch left the remote. */
export class GitWorkspace {
  readonly #environment: Record<string, string>;
  readonly #wrapper: readonly string[];

  /** @param wrapper put before git: an agent may configure programs for git to run */
  constructor(environment: Record<string, string>, wrapper: readonly string[]) {
    this.#environment = environment;
    this.#wrapper = wrapper;
  }

  /** Changed, new and deleted files below a folder, by path; none outside of a repository. */
  async changes(folder: string, ref: string | null): Promise<GitChange[]> {
    const found = await stat(folder).catch(() => null);
    if (!found?.isDirectory() || (await this.#git(folder, ['rev-parse', '--git-dir'])) === null) {
      return [];
    }
    const base = await this.#base(folder, ref);
    // Clients expect a rename as a deletion and an addition.
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
   * Both sides of a file's change.
   *
   * @throws HttpError 400 outside of a repository, or when one side is too large
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
    return { modified: await readModified(file), original };
  }

  async #original(folder: string, object: string, size: number): Promise<string | null> {
    requireComparableSize(size);
    return await this.#git(folder, ['cat-file', 'blob', object]);
  }

  /** The commit to compare with: the branch on the remote, else where it left the remote's default branch, else none. */
  async #base(folder: string, ref: string | null): Promise<string> {
    if (ref !== null) {
      const commit = await this.#commit(folder, ref);
      if (commit === null) {
        throw new HttpError(400, 'The ref does not exist in this repository.');
      }
      return commit;
    }
    const branch = (await this.#git(folder, ['rev-parse', '--abbrev-ref', 'HEAD']))?.trim();
    const remote = branch ? await this.#commit(folder, `refs/remotes/origin/${branch}`) : null;
    if (remote !== null) {
      return remote;
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

async function readModified(file: string): Promise<string | null> {
  const found = await stat(file).catch(() => null);
  if (!found?.isFile()) {
    return null;
  }
  requireComparableSize(found.size);
  return await readFile(file, 'utf8');
}

function requireComparableSize(bytes: number): void {
  if (bytes > MAX_DIFF_BYTES) {
    throw new HttpError(400, 'The file is too large to be compared.');
  }
}

/** The nearest folder above that exists: a deleted file's own folder may be gone with it. */
async function existingFolder(folder: string): Promise<string> {
  const found = await stat(folder).catch(() => null);
  return found?.isDirectory() || path.dirname(folder) === folder
    ? folder
    : await existingFolder(path.dirname(folder));
}

/** Output of `git diff --name-status -z --no-renames`: alternating status and path, each ended by a zero byte. */
function parseNameStatus(output: string): GitChange[] {
  const fields = output.split('\0');
  const changes: GitChange[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [status = '', changed = ''] = [fields[index], fields[index + 1]];
    changes.push({ status: STATUSES[status] ?? 'UPDATED', path: changed });
  }
  return changes;
}
