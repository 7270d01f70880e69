import path from 'node:path';
import type {
  GitServerCredential,
  GitPrepareResponse,
  GitPrepareFailure,
  PrepareRequest,
} from '@slipway/agent-protocol/git.js';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import type { WorkspaceFiles } from '../files/workspace-files.js';
import { SecretMasker } from '../secret-masker.js';
import { agentSpan } from '../observability.js';
import type { ToolView } from '../tool-view.js';
import { CloneParts } from './clone-parts.js';
import { describeClone, handOver, PrivateRepository, runInView, TAKE_OVER } from './private-repository.js';
import { currentBranch, failedOutcome, type GitOutcome, runGit, gitSecrets } from './run-git.js';

export interface RepositoryPreparationOptions {
  view: ToolView;
  /** Tools cannot write there: see `PrivateRepository`. */
  privateFolder: string;
  workspace: string;
  files: WorkspaceFiles;
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

  /** Requests for the same folder share one attempt. @throws WorkspaceFileError outside of the workspace */
  async prepare(request: PrepareRequest): Promise<GitPrepareResponse> {
    const { files, workspace } = this.#options;
    const folder = await files.resolve(path.resolve(workspace, request.directory));
    const running = this.#running.get(folder);
    if (running !== undefined) {
      return await running;
    }
    const preparing = agentSpan('prepare repository', () => this.#prepare(folder, request)).finally(() =>
      this.#running.delete(folder),
    );
    this.#running.set(folder, preparing);
    return await preparing;
  }

  /** Aborts running attempts, which leave nothing behind. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#running.values());
  }

  async #prepare(folder: string, request: PrepareRequest): Promise<GitPrepareResponse> {
    const { view, privateFolder } = this.#options;
    const credentials = repositoryCredentials(request);
    const result = await prepareRepository({
      ...request,
      view,
      privateFolder,
      folder,
      credentials,
      timeoutMs: request.timeout * 1000,
      signal: this.#stopped.signal,
    });
    const masker = new SecretMasker(gitSecrets(credentials));
    const notices = result.notices.map((notice) => masker.text(notice));
    return { ...result, output: masker.text(result.output), notices };
  }
}

interface RepositoryPlan extends Omit<PrepareRequest, 'directory' | 'username' | 'password' | 'timeout'> {
  view: ToolView;
  privateFolder: string;
  folder: string;
  credentials: readonly GitServerCredential[];
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * Clones or creates a repository in a temporary folder, then renames it, so that it is complete or absent. An
 * existing one is left alone. Only the private clone has credentials; all else runs as tools would do it, because a
 * checkout runs the filters that they have configured.
 */
export async function prepareRepository(plan: RepositoryPlan): Promise<GitPrepareResponse> {
  try {
    const { ok, output } = await inView(plan, FIND_FOLDER, [plan.folder]);
    if (!ok) {
      return failed('failed', output);
    }
    if (output === 'repository') {
      return await succeeded(plan, '');
    }
    if (output === 'used') {
      return failed('directory_not_empty', `${plan.folder} has other content.`);
    }
    return await createRepository(plan);
  } catch (error) {
    const code = errorCode(error);
    return failed(code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'failed', errorMessage(error));
  }
}

const FIND_FOLDER = `
if [ -e "$1/.git" ]; then echo repository; exit; fi
shopt -s nullglob dotglob
if [ -L "$1" ] || { [ -e "$1" ] && [ ! -d "$1" ]; }; then echo used; exit; fi
entries=("$1"/*)
if [ \${#entries[@]} -eq 0 ]; then echo empty; else echo used; fi
`;

// `folder url format branch commit default-branch new-branch name email upstream upstream-branch no-push filter`, empty where there is none. A branch name
// from a server is never passed to git where git could read it as an option.
const CREATE_REPOSITORY = `
set -e
folder=$1 url=$2 format=$3 branch=$4 commit=$5 default=$6 new_branch=$7 name=$8 email=$9
upstream=\${10} upstream_branch=\${11} no_push=\${12} filter=\${13}
parent=\${folder%/*}
temporary=$parent/.new-\${folder##*/}
mkdir -p -- "$parent/"
# Left by an attempt that was killed.
rm -rf -- "$temporary"
git init --quiet \${format:+"--object-format=$format"} -- "$temporary"
cd -- "$temporary"
git symbolic-ref HEAD "refs/heads/\${branch:-main}"
if [ -n "$url" ]; then
  ${TAKE_OVER}
  if [ -n "$branch" ]; then
    git config --local "branch.$branch.remote" origin
    git config --local "branch.$branch.merge" "refs/heads/$branch"
  fi
  if [ -n "$upstream" ]; then
    git config --local remote.upstream.url "$upstream"
    git config --local remote.upstream.fetch '+refs/heads/*:refs/remotes/upstream/*'
    git symbolic-ref refs/remotes/upstream/HEAD "refs/remotes/upstream/$upstream_branch"
  fi
  [ -z "$no_push" ] || git config --local remote.origin.pushurl "$no_push"
  if [ -n "$filter" ]; then
    git config --local core.repositoryFormatVersion 1
    git config --local extensions.partialClone origin
    git config --local remote.origin.promisor true
    git config --local remote.origin.partialCloneFilter "$filter"
  fi
  if [ -n "$commit" ]; then
    if [ -n "$branch" ]; then git update-ref HEAD "$commit"; else git update-ref --no-deref HEAD "$commit"; fi
    git reset --quiet --hard
  fi
  [ -z "$new_branch" ] || git checkout --quiet -b "$new_branch"
fi
[ -z "$name" ] || git config --local user.name "$name"
[ -z "$email" ] || git config --local user.email "$email"
`;

const FINISH_REPOSITORY = `
set -e
folder=$1
temporary=\${folder%/*}/.new-\${folder##*/}
if [ -d "$folder" ] && [ ! -L "$folder" ]; then rmdir -- "$folder"; fi
mv -T -- "$temporary" "$folder"
`;

const REMOVE_TEMPORARY = 'rm -rf -- "${1%/*}/.new-${1##*/}"';

async function createRepository(plan: RepositoryPlan): Promise<GitPrepareResponse> {
  const { url, folder, branch, new_branch: newBranch, timeoutMs } = plan;
  const empty = [folder, '', '', newBranch ?? branch ?? '', '', '', '', ...who(plan), '', '', '', ''];
  const outcome: CloneOutcome =
    url === null
      ? await inView(plan, CREATE_REPOSITORY + FINISH_REPOSITORY, empty)
      : await agentSpan('clone repository', () => cloneRepository(plan, url));
  if (outcome.ok) {
    return await succeeded(plan, outcome.output, outcome.notices);
  }
  await inView({ ...plan, signal: undefined }, REMOVE_TEMPORARY, [folder]);
  return outcome.timedOut
    ? failed('timeout', joinLines(outcome.output, `It took more than ${timeoutMs / 1000} s.`))
    : failed(prepareFailure(outcome.output), outcome.output);
}

async function cloneRepository(plan: RepositoryPlan, url: string): Promise<CloneOutcome> {
  const { view, credentials, timeoutMs, signal } = plan;
  const parts = { submodules: plan.submodules === true, lfs: plan.lfs === true };
  const deadlineAt = performance.now() + timeoutMs;
  const limits = { timeoutMs, signal };
  const transfer = { folder: plan.privateFolder, environment: view.environment, credentials, ...limits };
  return await PrivateRepository.clone(
    transfer,
    url,
    async (cloned, { output }) => {
      const found =
        plan.ref && plan.branch
          ? await fetchRef(plan, cloned, url, plan.ref, `refs/heads/${plan.branch}`)
          : null;
      if (found?.ok === false) {
        return found;
      }
      const upstream = plan.upstream ? await fetchUpstream(plan, cloned, plan.upstream) : [];
      const content = await describeClone(cloned, plan.branch);
      const said = output.replace(BARE_CLONE, `Cloning into '${plan.folder}'`);
      if (content === null) {
        const problem = `fatal: Remote branch ${plan.branch} not found in upstream origin`;
        return failedOutcome(joinLines(said, problem));
      }
      await cloned.packRefs(content.refs);
      const { format, branch, commit, defaultBranch, notice } = content;
      const files = plan.filter && commit !== null ? await cloned.fetchFiles(commit) : null;
      if (files?.ok === false) {
        return files;
      }
      const texts = [format, branch, commit, defaultBranch, plan.new_branch].map((text) => text ?? '');
      const hasParts = commit !== null && (parts.submodules || parts.lfs);
      const created = await agentSpan('check out files', () =>
        handOver(cloned, ['objects', 'packed-refs'], view, {
          script: hasParts ? CREATE_REPOSITORY : CREATE_REPOSITORY + FINISH_REPOSITORY,
          args: [plan.folder, url, ...texts, ...who(plan), ...remotes(plan)],
          ...limits,
        }),
      );
      const notices = notice === '' ? upstream : [notice, ...upstream];
      if (!created.ok || !hasParts) {
        return { ...created, output: joinLines(said, created.output), notices };
      }
      const added = new CloneParts({ ...parts, transfer, view, deadlineAt });
      const temporary = path.join(path.dirname(plan.folder), `.new-${path.basename(plan.folder)}`);
      await added.add(cloned, { folder: temporary, path: '', url, commit });
      const finished = await inView(plan, FINISH_REPOSITORY, [plan.folder]);
      return {
        ...finished,
        output: joinLines(said, created.output),
        notices: [...notices, ...added.notices],
      };
    },
    plan,
  );
}

async function fetchRef(
  { depth }: RepositoryPlan,
  cloned: PrivateRepository,
  url: string,
  from: string,
  to: string,
): Promise<GitOutcome> {
  const options = ['--no-tags', '--no-write-fetch-head', ...(depth ? [`--depth=${depth}`] : [])];
  return await cloned.git('fetch', ...options, '--', url, `+${from}:${to}`);
}

/** What it goes into; a pull request stays one that can be worked on without it. */
async function fetchUpstream(
  plan: RepositoryPlan,
  cloned: PrivateRepository,
  { url, branch }: NonNullable<RepositoryPlan['upstream']>,
): Promise<string[]> {
  const to = `refs/remotes/upstream/${branch}`;
  const { ok } = await fetchRef(plan, cloned, url, `refs/heads/${branch}`, to);
  return ok ? [] : [`The branch ${branch} of upstream could not be fetched.`];
}

function remotes({ upstream, no_push: noPush, filter }: RepositoryPlan): string[] {
  return [upstream?.url ?? '', upstream?.branch ?? '', noPush ?? '', filter ?? ''];
}

type CloneOutcome = GitOutcome & { notices?: readonly string[] };

/** The start of git's output, with a folder that the user does not know. */
const BARE_CLONE = /^Cloning into bare repository '[^'\n]*'/m;

function who({ identity }: RepositoryPlan): [string, string] {
  return [identity?.name ?? '', identity?.email ?? ''];
}

function joinLines(...texts: string[]): string {
  return texts.filter((text) => text !== '').join('\n');
}

async function inView(
  { view, timeoutMs, signal }: RepositoryPlan,
  script: string,
  args: readonly string[],
): Promise<GitOutcome> {
  return await runInView(view, { script, args, timeoutMs, signal });
}

async function succeeded(
  { view, folder }: RepositoryPlan,
  output: string,
  notices: readonly string[] = [],
): Promise<GitPrepareResponse> {
  const [head, branch] = await Promise.all([
    runGit(view, folder, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']),
    currentBranch(view, folder),
  ]);
  return { ok: true, failure: null, output, head: head?.trim() ?? null, branch, notices: [...notices] };
}

function failed(failure: GitPrepareFailure, output: string): GitPrepareResponse {
  return { ok: false, failure, output, head: null, branch: null, notices: [] };
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

/** What a request brings for the server of its address, and for no other. */
export function repositoryCredentials({
  url,
  username,
  password,
  bearer,
}: Pick<PrepareRequest, 'url' | 'username' | 'password' | 'bearer'>): GitServerCredential[] {
  return url === null || password === null
    ? []
    : [{ origin: new URL(url).origin, username: username ?? '', password, bearer }];
}
