import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { GitServerCredential, GitPrepareResponse, GitPrepareFailure } from '../../agent-protocol/git.js';
import { errorCode, errorMessage } from '../../common/errors/error-message.js';
import type { AllowedPaths } from '../files/allowed-paths.js';
import { SecretMasker } from '../secret-masker.js';
import { gitSecrets } from './git-credentials.js';
import type { PrepareRequest } from './git-schemas.js';
import { type GitOutcome, runGit, trustedGit } from './run-git.js';

export interface GitEnvironment {
  environment: Record<string, string>;
  /** Put before git where an agent may have configured the repository. */
  wrapper: readonly string[];
}

interface RepositoryPreparationOptions extends GitEnvironment {
  workspace: string;
  paths: AllowedPaths;
}

/** Prepares the repositories that clients ask for, each folder by one attempt at a time. */
export class RepositoryPreparation {
  readonly #options: RepositoryPreparationOptions;
  readonly #running = new Map<string, Promise<GitPrepareResponse>>();
  readonly #stopped = new AbortController();

  constructor(options: RepositoryPreparationOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /**
   * Requests for a folder that is being prepared share that attempt and its result.
   *
   * @throws HttpError when the folder is not inside the workspace
   */
  async prepare(request: PrepareRequest): Promise<GitPrepareResponse> {
    const { paths, workspace } = this.#options;
    const folder = await paths.resolve(path.resolve(workspace, request.directory));
    const running = this.#running.get(folder);
    if (running !== undefined) {
      return await running;
    }
    const preparing = this.#prepare(folder, request).finally(() => this.#running.delete(folder));
    this.#running.set(folder, preparing);
    return await preparing;
  }

  /** Aborts running attempts, which leave nothing behind. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#running.values());
  }

  async #prepare(folder: string, request: PrepareRequest): Promise<GitPrepareResponse> {
    const { url, username, password } = request;
    const credentials =
      url === null || password === null
        ? []
        : [{ origin: new URL(url).origin, username: username ?? '', password }];
    const result = await prepareRepository(
      {
        url,
        folder,
        branch: request.branch,
        newBranch: request.new_branch ?? null,
        identity: request.identity,
        credentials,
        timeoutMs: request.timeout * 1000,
        signal: this.#stopped.signal,
      },
      this.#options,
    );
    return { ...result, output: new SecretMasker(gitSecrets(credentials)).text(result.output) };
  }
}

interface RepositoryPlan {
  /** null: an empty repository. */
  url: string | null;
  /** Absolute. */
  folder: string;
  branch: string | null;
  newBranch: string | null;
  identity: { name: string; email: string } | null;
  credentials: readonly GitServerCredential[];
  timeoutMs: number;
  signal?: AbortSignal;
}

/**
 * Clones or creates a repository in a temporary folder beside its final one, then renames it, so that it is complete or
 * not there at all. A folder that is a repository already is left alone.
 */
export async function prepareRepository(
  plan: RepositoryPlan,
  environment: GitEnvironment,
): Promise<GitPrepareResponse> {
  try {
    if (await exists(path.join(plan.folder, '.git'))) {
      return await succeeded(plan.folder, environment, '');
    }
    if (!(await isEmpty(plan.folder))) {
      return failed('directory_not_empty', `${plan.folder} has other content.`);
    }
    return await createRepository(plan, environment);
  } catch (error) {
    const code = errorCode(error);
    return failed(code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'failed', errorMessage(error));
  }
}

async function createRepository(
  plan: RepositoryPlan,
  environment: GitEnvironment,
): Promise<GitPrepareResponse> {
  const parent = path.dirname(plan.folder);
  const temporary = path.join(parent, `.new-${path.basename(plan.folder)}`);
  await mkdir(parent, { recursive: true });
  // Left by an attempt that was killed.
  await rm(temporary, { recursive: true, force: true });
  let output = '';
  for (const { args, cwd } of commandsFor(plan, parent, temporary)) {
    const outcome = await git(plan, environment, args, cwd);
    output = [output, outcome.output].filter((text) => text !== '').join('\n');
    if (!outcome.ok) {
      await rm(temporary, { recursive: true, force: true });
      return outcome.timedOut
        ? failed('timeout', `${output}\nIt took more than ${plan.timeoutMs / 1000} s.`.trim())
        : failed(prepareFailure(outcome.output), output);
    }
  }
  await rename(temporary, plan.folder);
  return await succeeded(plan.folder, environment, output);
}

interface GitCommand {
  args: string[];
  cwd: string;
}

function commandsFor(
  { url, branch, newBranch, identity }: RepositoryPlan,
  parent: string,
  temporary: string,
): GitCommand[] {
  const inside = (...args: string[]): GitCommand => ({ args, cwd: temporary });
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
  const branchOption = branch === null ? [] : ['--branch', branch];
  const clone = ['clone', '--no-progress', ...branchOption, '--', url, temporary];
  const checkout = newBranch === null ? [] : [inside('checkout', '--quiet', '-b', newBranch)];
  return [{ args: clone, cwd: parent }, ...checkout, ...configure];
}

async function git(
  plan: RepositoryPlan,
  { environment }: GitEnvironment,
  args: string[],
  cwd: string,
): Promise<GitOutcome> {
  return await trustedGit({
    args,
    cwd,
    environment,
    credentials: plan.credentials,
    timeoutMs: plan.timeoutMs,
    ...(plan.signal && { signal: plan.signal }),
  });
}

async function succeeded(
  folder: string,
  { environment, wrapper }: GitEnvironment,
  output: string,
): Promise<GitPrepareResponse> {
  const ask = async (...args: string[]): Promise<string | null> =>
    (await runGit({ cwd: folder, environment, wrapper }, args))?.trim() || null;
  const [head, branch] = await Promise.all([
    ask('rev-parse', '--verify', '--quiet', 'HEAD^{commit}'),
    ask('symbolic-ref', '--quiet', '--short', 'HEAD'),
  ]);
  return { ok: true, failure: null, output, head, branch };
}

function failed(failure: GitPrepareFailure, output: string): GitPrepareResponse {
  return { ok: false, failure, output, head: null, branch: null };
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}

async function isEmpty(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return true;
    }
    throw error;
  }
}

/** What git, curl and the large git servers write; the first match counts. */
const FAILURE_PATTERNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref|no such ref was fetched/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied|permission to .* denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404|project you were looking for/i, 'repository_not_found'],
  [
    /could not resolve (host|proxy)|failed to connect|couldn't connect|connection (refused|reset|timed out)|ssl|certificate/i,
    'unreachable',
  ],
];

/** Why git failed, read from its output (in English, as `LC_ALL=C` makes it). */
export function prepareFailure(output: string): GitPrepareFailure {
  return FAILURE_PATTERNS.find(([pattern]) => pattern.test(output))?.[1] ?? 'failed';
}
