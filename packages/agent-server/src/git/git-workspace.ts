import path from 'node:path';
import type { GitChange, GitCommit, GitCommitsPage, GitDiff } from '@slipway/agent-protocol/git.js';
import {
  nullIf,
  TEMPORARY_NAMES,
  WorkspaceFileError,
  type WorkspaceFiles,
} from '../files/workspace-files.js';
import { HttpError } from '../http/http-error.js';
import { commandOutput } from '../process-tree.js';
import { scriptInView, type ToolView } from '../tool-view.js';
import { currentBranch, parseEscapedPath, parseGitName, printable, runGit } from './run-git.js';

const MAX_REPOSITORIES = 20;
const FIND_TIMEOUT_MS = 10_000;
/** Linux allows no longer names. */
const MAX_NAME_BYTES = 256;
const FIND_SCRIPT = `
cd -P -- "$1" 2>/dev/null || exit 0
shopt -s nullglob
count=0
for git in ./*/.git; do
  name=\${git#./} name=\${name%/.git}
  [ -L "./$name" ] && continue
  git -c safe.directory='*' -C "./$name" rev-parse --git-dir >/dev/null 2>&1 || continue
  ((++count > $2)) && exit 0
  printf '%s\\0' "$name"
done
`;

async function nestedRepositories(view: ToolView, folder: string): Promise<WorkingTree[]> {
  const find = scriptInView(view, FIND_SCRIPT, [folder, String(MAX_REPOSITORIES)]);
  const { output } = await commandOutput(
    { ...find, timeoutMs: FIND_TIMEOUT_MS },
    MAX_REPOSITORIES * MAX_NAME_BYTES,
  );
  const names = output.split('\0').slice(0, -1);
  return names.map((name) => ({ folder: path.join(folder, name), name }));
}

interface WorkingTree {
  folder: string;
  name: string;
}

const DEFAULT_BRANCHES = ['main', 'master'];

/** The id of the commit that a name stands for; null if there is none. */
async function commitOf(view: ToolView, folder: string, name: string): Promise<string | null> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`];
  return (await runGit(view, folder, args))?.trim() ?? null;
}

/** The id that every repository knows for a tree without files: compared with it, everything is new. */
async function emptyTree(view: ToolView, folder: string): Promise<string> {
  return required(await runGit(view, folder, ['hash-object', '-t', 'tree', '--stdin'])).trim();
}

/**
 * What the work is compared with, so that it stays visible after a commit or push: the branch on the remote while
 * the two differ, else the point where it left the default branch (where the history is cut before that, the branch on the remote),
 * else the last commit, else no files.
 */
async function comparisonBase(view: ToolView, folder: string): Promise<string> {
  const git = async (...args: string[]): Promise<string | null> =>
    (await runGit(view, folder, args))?.trim() ?? null;
  const head = await commitOf(view, folder, 'HEAD');
  if (head === null) {
    return await emptyTree(view, folder);
  }
  const branch = await currentBranch(view, folder);
  const pushed = branch === null ? null : await commitOf(view, folder, `refs/remotes/origin/${branch}`);
  if (pushed !== null && (pushed !== head || (await git('diff', '--quiet', 'HEAD', '--')) === null)) {
    return pushed;
  }
  const shared = await firstCommit(view, folder, [
    'refs/remotes/upstream/HEAD',
    'refs/remotes/origin/HEAD',
    ...DEFAULT_BRANCHES.map((name) => `refs/remotes/origin/${name}`),
  ]);
  if (shared !== null) {
    return (await git('merge-base', 'HEAD', shared)) ?? pushed ?? shared;
  }
  const local = await firstCommit(
    view,
    folder,
    DEFAULT_BRANCHES.filter((name) => name !== branch).map((name) => `refs/heads/${name}`),
  );
  const isAncestor = local !== null && (await git('merge-base', 'HEAD', local)) === local;
  return isAncestor ? local : head;
}

async function firstCommit(view: ToolView, folder: string, names: readonly string[]): Promise<string | null> {
  for (const name of names) {
    const commit = await commitOf(view, folder, name);
    if (commit !== null) {
      return commit;
    }
  }
  return null;
}

const MAX_DIFF_BYTES = 1_000_000;
const TOO_LARGE = 'The file is too large to be compared.';
const UNREADABLE = 'git cannot read this repository.';
const NO_FILE = ['missing', 'folder', 'special', 'blocked'] as const;
/** Statuses by the letters of `git diff --name-status`; every other letter means `UPDATED`. */
const STATUSES: Record<string, GitChange['status']> = { A: 'ADDED', D: 'DELETED' };
// Clients expect a rename as a deletion and an addition.
// Names are read in their quoted form, in which every byte of them arrives.
const QUOTED = ['-c', 'core.quotePath=true'];
const NAME_STATUS = [...QUOTED, 'diff', '--name-status', '--no-renames', '--no-ext-diff', '--relative'];
const UNTRACKED = [...QUOTED, 'ls-files', '--others', '--exclude-standard', `--exclude=${TEMPORARY_NAMES}`];
/** Fields of a commit, which have no control characters. */
const COMMIT_FORMAT = '%H%x1f%h%x1f%an%x1f%aI%x1f%s';

/** What changed in a repository, as tools see it: an agent may have configured programs for git to run. */
export class GitWorkspace {
  readonly #view: ToolView;
  readonly #files: WorkspaceFiles;
  readonly #workspace: string;

  /** @param workspace what the names of other working trees begin at */
  constructor(view: ToolView, files: WorkspaceFiles, workspace: string) {
    this.#view = view;
    this.#files = files;
    this.#workspace = workspace;
  }

  /** Also of repositories directly in the folder, and of its repository's other working trees. Null compares with `comparisonBase`. @throws WorkspaceFileError */
  async changes(given: string, ref: string | null): Promise<GitChange[]> {
    const folder = await this.#files.resolve(given);
    const direct = await nestedRepositories(this.#view, folder);
    const trees = await this.#otherTrees(folder, await this.#files.resolve(this.#workspace));
    const nested = [
      ...direct,
      ...trees.filter((tree) => direct.every((each) => each.folder !== tree.folder)),
    ];
    const own = (await this.#isRepository(folder)) ? await this.#changesIn(folder, ref) : [];
    const others = await Promise.all(
      nested.map(async ({ folder: place, name }) =>
        (await this.#changesIn(place, ref)).map((change) => ({
          ...change,
          path: `${name}/${change.path}`,
        })),
      ),
    );
    const isNested = ({ path: file }: GitChange): boolean =>
      nested.some(
        ({ folder: place, name }) => isBelow(place, folder) && (file === name || file.startsWith(`${name}/`)),
      );
    // A tree within another one is a new folder to that.
    const listed = others.flat().filter((change) => nested.every(({ name }) => change.path !== `${name}/`));
    return [...own.filter((change) => !isNested(change)), ...listed].toSorted(byPath);
  }

  /** Empty where the file does not exist, null outside of repositories. @throws WorkspaceFileError; HttpError 400 */
  async diff(given: string, ref: string | null): Promise<GitDiff> {
    const diff = await this.#diff(given, async ({ folder, name, file, rest }) => {
      const base = await this.#base(folder, ref);
      return {
        original: await this.#textAt(folder, base, name),
        modified: await this.#modified(file, rest),
      };
    });
    if (diff === null) {
      throw new HttpError(400, 'The file does not exist, and did not exist before.');
    }
    return diff;
  }

  async commits(given: string, limit: number): Promise<GitCommitsPage> {
    const folder = await this.#files.resolve(given);
    const args = ['log', '--no-show-signature', `--format=${COMMIT_FORMAT}`, '-z', '-n', String(limit + 1)];
    const commits = ((await runGit(this.#view, folder, args)) ?? '').split('\0').flatMap(toCommit);
    return { commits: commits.slice(0, limit), has_more: commits.length > limit };
  }

  /** What a commit changed against its first parent. @throws WorkspaceFileError; HttpError 400 for an unknown one */
  async changesOfCommit(given: string, sha: string): Promise<GitChange[]> {
    const folder = await this.#files.resolve(given);
    if (!(await this.#isRepository(folder))) {
      return [];
    }
    const { commit, parent } = await this.#commit(folder, sha);
    const changed = await runGit(this.#view, folder, [...NAME_STATUS, parent, commit, '--']);
    return parseNameStatus(required(changed)).toSorted(byPath);
  }

  /** Neither side is read from the disk. @throws WorkspaceFileError; HttpError 400 for no such commit or side */
  async diffOfCommit(given: string, sha: string): Promise<GitDiff> {
    const diff = await this.#diff(given, async ({ folder, name }) => {
      const { commit, parent } = await this.#commit(folder, sha);
      return {
        modified: await this.#textAt(folder, commit, name),
        original: await this.#textAt(folder, parent, name),
      };
    });
    return diff ?? { modified: '', original: '' };
  }

  /** The diff of the first file that has a side; null if none has. */
  async #diff(given: string, sidesOf: (candidate: Candidate) => Promise<GitDiff>): Promise<GitDiff | null> {
    for await (const candidate of this.#candidates(given)) {
      if (!(await this.#isRepository(candidate.folder))) {
        return { modified: null, original: null };
      }
      const { modified, original } = await sidesOf(candidate);
      if (original !== null || modified !== null) {
        return { modified: modified ?? '', original: original ?? '' };
      }
    }
    return null;
  }

  /** Working trees of the same repository below the workspace, beside that of the folder. */
  async #otherTrees(folder: string, workspace: string): Promise<WorkingTree[]> {
    const listed = (await runGit(this.#view, folder, ['worktree', 'list', '--porcelain'])) ?? '';
    const named = Array.from(listed.matchAll(/^worktree (.+)$/gm), ([, place = '']) => place);
    const resolve = (given: string): Promise<string | null> => this.#files.resolve(given).catch(nullIf());
    const places = await Promise.all(named.slice(0, MAX_REPOSITORIES).map(resolve));
    const trees = places.flatMap((place): WorkingTree[] => {
      const base = place !== null && isBelow(place, folder) ? folder : workspace;
      const isOther = place !== null && place !== folder && !isBelow(folder, place) && isBelow(place, base);
      return isOther ? [{ folder: place, name: path.relative(base, place) }] : [];
    });
    // One whose folder was removed is still listed for a while.
    const exist = await Promise.all(trees.map((tree) => this.#isRepository(tree.folder)));
    return trees.filter((_tree, index) => exist[index]);
  }

  /** The file that a change of another working tree is shown as: its name begins at the workspace. */
  async #inOtherTree(given: string): Promise<Candidate[]> {
    const file = await this.#files.resolve(given);
    const workspace = await this.#files.resolve(this.#workspace);
    const folder = await this.#files.enclosingFolder(path.dirname(file));
    const top = (await runGit(this.#view, folder, ['rev-parse', '--show-toplevel']))?.trim() ?? folder;
    const meant = path.join(workspace, path.relative(top, file));
    const trees = await this.#otherTrees(folder, workspace);
    if (!trees.some((tree) => isBelow(meant, tree.folder))) {
      return [];
    }
    const above = await this.#files.enclosingFolder(path.dirname(meant));
    return [{ folder: above, name: printable(path.relative(above, meant)), file: meant, rest: '' }];
  }

  /**
   * What a path can mean: a file of that name, one whose name is shown like that because it is not UTF-8, or one of
   * another working tree.
   */
  async *#candidates(given: string): AsyncGenerator<Candidate, void> {
    const file = await this.#files.resolve(given);
    // A deleted file's own folder may be gone with it.
    const folder = await this.#files.enclosingFolder(path.dirname(file));
    yield { folder, name: printable(path.relative(folder, file)), file, rest: '' };
    const escaped = parseEscapedPath(given);
    if (escaped !== null) {
      const parent = await this.#files.resolve(escaped.parent);
      const above = await this.#files.enclosingFolder(parent);
      const name = [printable(path.relative(above, parent)), escaped.rest].filter((part) => part !== '');
      yield { folder: above, name: name.join('/'), file: parent, rest: escaped.rest };
    }
    yield* await this.#inOtherTree(given);
  }

  async #changesIn(folder: string, ref: string | null): Promise<GitChange[]> {
    const base = await this.#base(folder, ref);
    const [changed, untracked] = await Promise.all([
      runGit(this.#view, folder, [...NAME_STATUS, base, '--', '.']),
      runGit(this.#view, folder, [...UNTRACKED, '--', '.']),
    ]);
    const added = required(untracked)
      .split('\n')
      .filter((name) => name !== '')
      .map(parseGitName);
    return [
      ...parseNameStatus(required(changed)),
      ...added.map((name): GitChange => ({ status: 'ADDED', path: name })),
    ].toSorted(byPath);
  }

  async #modified(file: string, rest: string): Promise<string | null> {
    try {
      const content = await this.#files.read(file, MAX_DIFF_BYTES, rest).catch(nullIf(...NO_FILE));
      return content?.toString('utf8') ?? null;
    } catch (error) {
      const isLarge = error instanceof WorkspaceFileError && error.failure === 'large';
      throw isLarge ? new HttpError(400, TOO_LARGE) : error;
    }
  }

  /** Returns null if the commit does not have the file. The name is a text for `printf %b`. */
  async #textAt(folder: string, commit: string, name: string): Promise<string | null> {
    const object = `${commit}:./`;
    const size = await runGit(this.#view, folder, ['cat-file', '-s', object], name);
    if (size === null) {
      return null;
    }
    if (!(Number(size) <= MAX_DIFF_BYTES)) {
      throw new HttpError(400, TOO_LARGE);
    }
    return required(await runGit(this.#view, folder, ['cat-file', 'blob', object], name));
  }

  async #isRepository(folder: string): Promise<boolean> {
    return (await runGit(this.#view, folder, ['rev-parse', '--git-dir'])) !== null;
  }

  async #base(folder: string, ref: string | null): Promise<string> {
    if (ref === null) {
      return await comparisonBase(this.#view, folder);
    }
    const commit = await commitOf(this.#view, folder, ref);
    if (commit === null && ref !== 'HEAD') {
      throw new HttpError(400, 'The ref does not exist in this repository.');
    }
    return commit ?? (await emptyTree(this.#view, folder));
  }

  async #commit(folder: string, sha: string): Promise<{ commit: string; parent: string }> {
    const commit = await commitOf(this.#view, folder, sha);
    if (commit === null) {
      throw new HttpError(400, 'The commit does not exist in this repository.');
    }
    const parent = await commitOf(this.#view, folder, `${commit}^`);
    return { commit, parent: parent ?? (await emptyTree(this.#view, folder)) };
  }
}

interface Candidate {
  folder: string;
  /** Below the folder, a text for `printf %b`. */
  name: string;
  file: string;
  rest: string;
}

function required(output: string | null): string {
  if (output === null) {
    throw new HttpError(400, UNREADABLE);
  }
  return output;
}

function isBelow(place: string, folder: string): boolean {
  return place.startsWith(`${folder.replace(/\/$/, '')}/`);
}

function byPath(a: GitChange, b: GitChange): number {
  return a.path < b.path ? -1 : 1;
}

function toCommit(line: string): GitCommit[] {
  const [sha = '', short_sha = '', author = '', timestamp, subject = ''] = line.split('\u001F');
  return timestamp === undefined ? [] : [{ sha, short_sha, subject, author, timestamp }];
}

/** Output of `git diff --name-status --no-renames`: lines of status and path. */
function parseNameStatus(output: string): GitChange[] {
  return output.split('\n').flatMap((line) => {
    const [status = '', changed] = line.split('\t');
    return changed === undefined
      ? []
      : [{ status: STATUSES[status] ?? ('UPDATED' as const), path: parseGitName(changed) }];
  });
}
