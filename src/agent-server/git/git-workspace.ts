import path from 'node:path';
import type { GitChange, GitDiff } from '../../agent-protocol/git.js';
import { type FileFailure, WorkspaceFileError, type WorkspaceFiles } from '../files/workspace-files.js';
import { HttpError } from '../http/http-error.js';
import type { ToolView } from '../tool-view.js';
import { runGit } from './run-git.js';

/** The id that every repository knows for a tree without files: compared with it, everything is new. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const MAX_DIFF_BYTES = 1_000_000;
const TOO_LARGE = 'The file is too large to be compared.';
/** Such a file has no text to show. */
const NO_FILE: ReadonlySet<FileFailure> = new Set(['missing', 'folder', 'special', 'blocked']);
/** By the letters of `git diff --name-status`; every other one means `UPDATED`. */
const STATUSES: Record<string, GitChange['status']> = { A: 'ADDED', D: 'DELETED' };

/** What changed in a repository since its branch left the remote. */
export class GitWorkspace {
  readonly #view: ToolView;
  readonly #files: WorkspaceFiles;

  /** @param view where an agent may have configured programs for git to run */
  constructor(view: ToolView, files: WorkspaceFiles) {
    this.#view = view;
    this.#files = files;
  }

  /**
   * Changed, new and deleted files below a folder, by path; none outside of a repository.
   *
   * @throws WorkspaceFileError
   */
  async changes(given: string, ref: string | null): Promise<GitChange[]> {
    const folder = await this.#files.resolve(given);
    if ((await this.#git(folder, ['rev-parse', '--git-dir'])) === null) {
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
   * @throws WorkspaceFileError; HttpError 400 outside of a repository, or when one side is too large
   */
  async diff(given: string, ref: string | null): Promise<GitDiff> {
    const file = await this.#files.resolve(given);
    // A deleted file's own folder may be gone with it.
    const folder = await this.#files.enclosingFolder(path.dirname(file));
    if ((await this.#git(folder, ['rev-parse', '--git-dir'])) === null) {
      throw new HttpError(400, 'Path is not in a git repository');
    }
    const base = await this.#base(folder, ref);
    const name = path.relative(folder, file);
    const size = await this.#git(folder, ['cat-file', '-s', `${base}:./${name}`]);
    const original = size === null ? null : await this.#original(folder, `${base}:./${name}`, Number(size));
    return { modified: await this.#modified(file), original };
  }

  async #modified(file: string): Promise<string | null> {
    try {
      return (await this.#files.read(file, MAX_DIFF_BYTES)).toString('utf8');
    } catch (error) {
      if (!(error instanceof WorkspaceFileError)) {
        throw error;
      }
      if (error.failure === 'large') {
        throw new HttpError(400, TOO_LARGE);
      }
      if (NO_FILE.has(error.failure)) {
        return null;
      }
      throw error;
    }
  }

  async #original(folder: string, object: string, size: number): Promise<string | null> {
    if (!(size <= MAX_DIFF_BYTES)) {
      throw new HttpError(400, TOO_LARGE);
    }
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
    return await runGit(this.#view, folder, args);
  }
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
