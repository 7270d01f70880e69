import type { ToolView } from '../tool-view.js';
import { runGit } from './run-git.js';

/** The id that every repository knows for a tree without files: compared with it, everything is new. */
export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const DEFAULT_BRANCHES = ['main', 'master'];

/** The id of the commit that a name stands for; null if there is none. */
export async function commitOf(view: ToolView, folder: string, name: string): Promise<string | null> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`];
  return (await runGit(view, folder, args))?.trim() ?? null;
}

/**
 * What the work in a repository is compared with, such that it stays visible after it was committed or pushed: the
 * branch on the remote while the two differ, else where the branch left the default branch, else the last commit, else
 * no files.
 */
export async function comparisonBase(view: ToolView, folder: string): Promise<string> {
  const git = async (...args: string[]): Promise<string | null> =>
    (await runGit(view, folder, args))?.trim() ?? null;
  const head = await commitOf(view, folder, 'HEAD');
  if (head === null) {
    return EMPTY_TREE;
  }
  const branch = await git('symbolic-ref', '--quiet', '--short', 'HEAD');
  const pushed = branch === null ? null : await commitOf(view, folder, `refs/remotes/origin/${branch}`);
  if (pushed !== null && (pushed !== head || (await git('diff', '--quiet', 'HEAD', '--')) === null)) {
    return pushed;
  }
  const shared = await firstCommit(view, folder, [
    'refs/remotes/origin/HEAD',
    ...DEFAULT_BRANCHES.map((name) => `refs/remotes/origin/${name}`),
  ]);
  if (shared !== null) {
    return (await git('merge-base', 'HEAD', shared)) ?? shared;
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
