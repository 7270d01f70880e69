import { Readable } from 'node:stream';
import type {
  GitAccess,
  GitServerCredential,
  GitPushResponse,
  PushRequest,
} from '@slipway/agent-protocol/git.js';
import { CLONE_FILTERS } from '@slipway/common/clone-part.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import type { ToolView } from '../tool-view.js';
import {
  type KnownRepository,
  listRefs,
  parseRefs,
  PrivateRepository,
  type PrivateRepositoryOptions,
  type Refs,
  handOver,
  runInView,
  type ViewScript,
} from './private-repository.js';
import {
  repositoryCredentials,
  type RepositoryPreparationOptions,
  prepareFailure,
  prepareRepository,
} from './repository-preparation.js';
import { currentBranch, failedOutcome, type GitOutcome, runGit, gitSecrets } from './run-git.js';
import { SecretMasker } from '../secret-masker.js';

const TIMEOUT_MS = 600_000;
const UPDATE_REFS = 'cd -- "$1" && exec git update-ref --stdin';
/** Writes to wherever the repository keeps its objects: it is the agent's repository, so the agent may choose. */
const TAKE_OBJECTS =
  'cd -- "$1" && cd -- "$(git rev-parse --path-format=absolute --git-path objects)" && tar -xf - --strip-components=1';
const PUSH = 'cd -- "$1" && exec git push --no-verify origin "$2"';
const PUSH_TO = 'cd -- "$1" && exec git config --local remote.origin.pushurl "$2"';
const DENIALS: readonly string[] = ['authentication', 'repository_not_found'];
const SHOW = 'cat -- "$1"';
/** Maximum size of the list of shallow commits; a longer list belongs to a history with thousands of cuts. */
const MAX_SHALLOW = 1_000_000;
/** New pointers: some servers reject a push without their content, others let it break the checkouts of all. */
const LFS_POINTER = '-G^oid sha256:[0-9a-f]{64}$';
const LFS_NOT_SENT =
  'These commits have pointers of Git LFS, and the content that these stand for is not sent: tell the user, unless the server has it already.';
const PARTIAL = ['config', '--local', '--get', 'remote.origin.partialCloneFilter'];
const NO_ORIGIN = 'This folder is in no repository with a remote named origin.';

interface RemoteAccessOptions {
  view: ToolView;
  /** A folder that only the agent server can read and write. */
  privateFolder: string;
  git: () => Pick<GitAccess, 'credentials' | 'mode'>;
  /** Has the service push to a fork of the user's, where the server of origin denies a push. */
  elsewhere?: PushElsewhere | undefined;
}

/** Pushes a branch of the repository around a folder. @throws Error with a reason that the model may read */
export type PushElsewhere = (folder: string, branch: string, signal: AbortSignal) => Promise<GitOutcome>;

/** Fetches, pushes and clones on behalf of an agent that does not get the credentials itself. */
export class RemoteAccess {
  readonly #options: RemoteAccessOptions;

  constructor(options: RemoteAccessOptions) {
    this.#options = options;
  }

  /** Pushes a branch to `origin`, or to a fork where its server denies that; `cwd` is any folder in the repository. */
  async push(cwd: string, branch: string, signal: AbortSignal): Promise<GitOutcome> {
    const outcome = await this.pushTo(null, cwd, branch, signal);
    const { elsewhere } = this.#options;
    if (elsewhere === undefined || !isDenied(outcome)) {
      return outcome;
    }
    try {
      return await elsewhere(cwd, branch, signal);
    } catch (error) {
      return failedOutcome(`${outcome.output}\n${errorWithCauses(error)}`);
    }
  }

  /** @param to an address that takes the place of where `origin` is pushed to, also later on; null: `origin` */
  async pushTo(to: string | null, cwd: string, branch: string, signal: AbortSignal): Promise<GitOutcome> {
    const repository = await this.#inspect(cwd, ['remote', 'get-url', '--push', 'origin']);
    const commit = repository?.refs.get(`refs/heads/${branch}`);
    if (repository === null || commit === undefined) {
      return failedOutcome(repository === null ? NO_ORIGIN : `There is no local branch ${branch}.`);
    }
    if (to === null && !isHttp(repository.url)) {
      const args = [cwd, `refs/heads/${branch}:refs/heads/${branch}`];
      return await this.#asAgent({ script: PUSH, args, signal });
    }
    const { mode = 'write' } = this.#options.git();
    if (mode !== 'write') {
      return failedOutcome(`This conversation was started with git: ${mode}. It may not push.`);
    }
    const { address, credentials } = this.#access(to ?? repository.url);
    return await PrivateRepository.use(this.#transfer(credentials, signal), repository, async (own) => {
      const target = `${commit}:refs/heads/${branch}`;
      const outcome = await own.git('push', '--no-verify', '--', address, target);
      if (!outcome.ok) {
        return outcome;
      }
      await this.#writeRefs(cwd, new Map([[`refs/remotes/origin/${branch}`, commit]]));
      if (to !== null && !isSame(to, repository.url)) {
        await this.#asAgent({ script: PUSH_TO, args: [cwd, to] });
      }
      const sent = [commit, '--not', '--remotes=origin'];
      const pointers = await own.ask('log', '-1', LFS_POINTER, '--format=%h', ...sent);
      return pointers ? { ...outcome, output: `${outcome.output}\n${LFS_NOT_SENT}` } : outcome;
    });
  }

  /** Brings the branches of `origin`, and of `upstream` where there is one, up to date. */
  async fetch(cwd: string, signal: AbortSignal): Promise<GitOutcome> {
    const fetched = await this.#fetch('origin', cwd, signal);
    const isFork = (await runGit(this.#options.view, cwd, ['remote', 'get-url', 'upstream'])) !== null;
    if (!fetched.ok || !isFork) {
      return fetched;
    }
    const { output, ...outcome } = await this.#fetch('upstream', cwd, signal);
    return { ...outcome, output: `${fetched.output}\n${output}` };
  }

  async #fetch(remote: 'origin' | 'upstream', cwd: string, signal: AbortSignal): Promise<GitOutcome> {
    const repository = await this.#inspect(cwd, ['remote', 'get-url', remote]);
    if (repository === null || !isHttp(repository.url)) {
      return failedOutcome(
        repository === null ? NO_ORIGIN : `The address of ${remote} is not http(s): fetch by yourself.`,
      );
    }
    const { address, credentials } = this.#access(repository.url);
    return await PrivateRepository.use(this.#transfer(credentials, signal), repository, async (own) => {
      const branches = `+refs/heads/*:refs/remotes/${remote}/*`;
      const from = repository.partial === null ? address : 'origin';
      const outcome = await own.git('fetch', '--no-write-fetch-head', '--', from, branches);
      if (!outcome.ok) {
        return outcome;
      }
      const fetched = await own.refs(`refs/remotes/${remote}`, 'refs/tags');
      const changed = [...fetched].filter(([name, id]) => repository.refs.get(name) !== id);
      const taken = await handOver(own, ['objects'], this.#options.view, {
        script: TAKE_OBJECTS,
        args: [cwd],
        timeoutMs: TIMEOUT_MS,
        signal,
      });
      if (!taken.ok) {
        return taken;
      }
      const written = await this.#writeRefs(cwd, new Map(changed));
      if (!written.ok) {
        return written;
      }
      const lines = changed.map(([name, id]) => `${name} is ${id.slice(0, 12)}`);
      return { ...outcome, output: lines.length === 0 ? 'Nothing is new.' : lines.join('\n') };
    });
  }

  async clone(url: string, folder: string, signal: AbortSignal): Promise<GitOutcome> {
    const { address, credentials } = this.#access(url);
    const { ok, output } = await prepareRepository({
      ...this.#options,
      url: address,
      folder,
      branch: null,
      identity: null,
      credentials,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    return { ok, timedOut: false, output };
  }

  /** What git says about an agent's repository, run where the agent may configure git. */
  async #inspect(cwd: string, askUrl: string[]): Promise<(KnownRepository & { url: string }) | null> {
    const ask = async (args: string[]): Promise<string | null> => await runGit(this.#options.view, cwd, args);
    const [url, filter, paths, refs] = await Promise.all([
      ask(askUrl),
      ask(PARTIAL),
      ask(['rev-parse', '--path-format=absolute', '--git-path', 'objects', '--git-path', 'shallow']),
      ask(listRefs('refs/heads', 'refs/remotes/origin', 'refs/remotes/upstream', 'refs/tags')),
    ]);
    const [objects, shallow] = (paths ?? '').split('\n');
    if (url === null || !objects || !shallow) {
      return null;
    }
    // Read with the agent's rights: the file may be a link to one that the agent cannot read.
    const show = { script: SHOW, args: [shallow], maxOutput: MAX_SHALLOW };
    const { ok, output } = await this.#asAgent(show);
    const commits = ok ? output.split('\n').filter((line) => /^[0-9a-f]{40,64}$/.test(line)) : [];
    const left = CLONE_FILTERS.find((known) => known === filter?.trim());
    const partial = left === undefined ? null : { filter: left, url: this.#access(url.trim()).address };
    return { url: url.trim(), objects, shallow: commits, partial, refs: parseRefs(refs ?? '') };
  }

  /** An agent may lead its origin anywhere: what is for one repository is used for its known address alone. */
  #access(url: string): { address: string; credentials: GitServerCredential[] } {
    const credentials = this.#options
      .git()
      .credentials.filter(({ repository }) => repository === undefined || isSame(repository, url));
    return { address: credentials.find(({ repository }) => repository)?.repository ?? url, credentials };
  }

  #transfer(credentials: GitServerCredential[], signal: AbortSignal): PrivateRepositoryOptions {
    const { privateFolder: folder, view } = this.#options;
    return { folder, environment: view.environment, credentials, signal };
  }

  async #writeRefs(cwd: string, refs: Refs): Promise<GitOutcome> {
    const lines = [...refs].map(([name, id]) => `update ${name} ${id}\n`);
    return await this.#asAgent({ script: UPDATE_REFS, args: [cwd], input: Readable.from(lines) });
  }

  async #asAgent(script: Omit<ViewScript, 'timeoutMs'>): Promise<GitOutcome> {
    return await runInView(this.#options.view, { ...script, timeoutMs: TIMEOUT_MS });
  }
}

function isHttp(url: string): boolean {
  return /^https?:\/\//i.test(url);
}

function isSame(repository: string, url: string): boolean {
  const [known, given] = [repository, url].map((each) => URL.parse(each)?.href.replace(/(\.git)?\/*$/, ''));
  return known !== undefined && known === given;
}

/** The credentials are no right to push there: hosts answer with 403, or hide the repository. */
export function isDenied({ ok, timedOut, output }: GitOutcome): boolean {
  return !ok && !timedOut && DENIALS.includes(prepareFailure(output));
}

const BRANCH_PUSH_TIMEOUT_MS = 120_000;

/**
 * Pushes the branch of a repository for the service, whose credentials pass only through memory. Without a branch,
 * the one checked out; never the default branch. @throws WorkspaceFileError
 */
export async function pushBranch(
  { files, view, privateFolder }: Omit<RepositoryPreparationOptions, 'workspace'>,
  given: string,
  request: PushRequest,
): Promise<GitPushResponse> {
  const folder = await files.resolve(given);
  const branch = request.branch ?? (await currentBranch(view, folder));
  if (branch === null) {
    return { ok: false, branch, output: 'No branch of a repository is checked out.' };
  }
  const main = await runGit(view, folder, ['symbolic-ref', '--quiet', 'refs/remotes/origin/HEAD']);
  const to = request.to ?? null;
  const origin = await runGit(view, folder, ['remote', 'get-url', 'origin']);
  // A pull request may come from the default branch of a fork.
  const isFork = to !== null && isSame(to, origin?.trim() ?? '');
  if (!isFork && main?.trim() === `refs/remotes/origin/${branch}`) {
    return { ok: false, branch, output: `${branch} is the default branch; commit to another one.` };
  }
  const credentials = repositoryCredentials(request);
  const access = new RemoteAccess({ view, privateFolder, git: () => ({ credentials }) });
  const outcome = await access.pushTo(to, folder, branch, AbortSignal.timeout(BRANCH_PUSH_TIMEOUT_MS));
  const output = new SecretMasker(gitSecrets(credentials)).text(outcome.output);
  return { ok: outcome.ok, branch, output, ...(isDenied(outcome) && { denied: true }) };
}
