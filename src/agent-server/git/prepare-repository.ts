import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { GitCredential } from '../../agent-protocol/git-access.js';
import type { GitPrepareAnswer, GitPrepareFailure } from '../../agent-protocol/git-prepare.js';
import { describeFailure } from '../failure.js';
import { prepareFailure } from './prepare-failure.js';
import { runGit } from './run-git.js';
import { type GitOutcome, trustedGit } from './trusted-git.js';

export interface RepositoryPlan {
  /** null: an empty repository. */
  url: string | null;
  /** Absolute. */
  folder: string;
  branch: string | null;
  newBranch: string | null;
  identity: { name: string; email: string } | null;
  credentials: readonly GitCredential[];
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface GitPlace {
  environment: Record<string, string>;
  /** Put before git where an agent may have configured the repository. */
  wrapper: readonly string[];
}

/**
 * Makes a folder a repository: in a folder beside it, which then takes its name, so that it is there as a whole or not
 * at all. One that is a repository already is left as it is.
 */
export async function prepareRepository(plan: RepositoryPlan, place: GitPlace): Promise<GitPrepareAnswer> {
  try {
    if (await exists(path.join(plan.folder, '.git'))) {
      return await ready(plan.folder, place, '');
    }
    if (!(await isEmpty(plan.folder))) {
      return failed('directory_not_empty', `${plan.folder} has other content.`);
    }
    return await make(plan, place);
  } catch (error) {
    const { code, message } = describeFailure(error);
    return failed(code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'failed', message);
  }
}

async function make(plan: RepositoryPlan, place: GitPlace): Promise<GitPrepareAnswer> {
  const parent = path.dirname(plan.folder);
  const temporary = path.join(parent, `.new-${path.basename(plan.folder)}`);
  await mkdir(parent, { recursive: true });
  // What an attempt left that was killed.
  await rm(temporary, { recursive: true, force: true });
  let output = '';
  for (const { args, cwd } of steps(plan, parent, temporary)) {
    const outcome = await git(plan, place, args, cwd);
    output = [output, outcome.output].filter((text) => text !== '').join('\n');
    if (!outcome.ok) {
      await rm(temporary, { recursive: true, force: true });
      return outcome.timedOut
        ? failed('timeout', `${output}\nIt took more than ${plan.timeoutMs / 1000} s.`.trim())
        : failed(prepareFailure(outcome.output), output);
    }
  }
  await rename(temporary, plan.folder);
  return await ready(plan.folder, place, output);
}

interface Step {
  args: string[];
  cwd: string;
}

function steps(
  { url, branch, newBranch, identity }: RepositoryPlan,
  parent: string,
  temporary: string,
): Step[] {
  const inside = (...args: string[]): Step => ({ args, cwd: temporary });
  const configure =
    identity === null
      ? []
      : [
          inside('config', '--local', 'user.name', identity.name),
          inside('config', '--local', 'user.email', identity.email),
        ];
  if (url === null) {
    const init = ['init', '--quiet', '--initial-branch', newBranch ?? branch ?? 'main', temporary];
    return [{ args: init, cwd: parent }, ...configure];
  }
  const wanted = branch === null ? [] : ['--branch', branch];
  const clone = ['clone', '--no-progress', ...wanted, '--', url, temporary];
  const leave = newBranch === null ? [] : [inside('checkout', '--quiet', '-b', newBranch)];
  return [{ args: clone, cwd: parent }, ...leave, ...configure];
}

async function git(plan: RepositoryPlan, place: GitPlace, args: string[], cwd: string): Promise<GitOutcome> {
  return await trustedGit({
    args,
    cwd,
    environment: place.environment,
    credentials: plan.credentials,
    timeoutMs: plan.timeoutMs,
    ...(plan.signal && { signal: plan.signal }),
  });
}

async function ready(
  folder: string,
  { environment, wrapper }: GitPlace,
  output: string,
): Promise<GitPrepareAnswer> {
  const ask = async (...args: string[]): Promise<string | null> =>
    (await runGit({ cwd: folder, environment, wrapper }, args))?.trim() || null;
  const [head, branch] = await Promise.all([
    ask('rev-parse', '--verify', '--quiet', 'HEAD^{commit}'),
    ask('symbolic-ref', '--quiet', '--short', 'HEAD'),
  ]);
  return { ok: true, failure: null, output, head, branch };
}

function failed(failure: GitPrepareFailure, output: string): GitPrepareAnswer {
  return { ok: false, failure, output, head: null, branch: null };
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}

async function isEmpty(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    if (describeFailure(error).code === 'ENOENT') {
      return true;
    }
    throw error;
  }
}
