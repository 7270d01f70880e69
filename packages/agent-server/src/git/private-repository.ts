import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import type { GitServerCredential, PrepareRequest } from '@slipway/agent-protocol/git.js';
import type { CloneFilter } from '@slipway/common/clone-part.js';
import {
  failedOutcome,
  type GitOutcome,
  outcomeOf,
  ownConfiguration,
  runGit,
  trustedGit,
} from './run-git.js';
import { type RunCommandOptions, startProcess } from '../process-tree.js';
import { scriptInView, type ToolView, VIEW_START } from '../tool-view.js';

const TRANSFER_TIMEOUT_MS = 600_000;
const REPOSITORY = 'repository.git';
/** A clone without trees lacks the one of its commit, then the files of that. */
const MAX_ROUNDS = 3;

export interface PrivateRepositoryOptions {
  /** The folder to create it in; tools cannot write there, nor see it if they have a view of their own. */
  folder: string;
  /** Variables of any program; no secrets. */
  environment: Record<string, string>;
  credentials: readonly GitServerCredential[];
  /** Milliseconds, of one transfer; ten minutes by default. */
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

export interface KnownRepository {
  /** The agent's object store, which is only read. */
  objects: string;
  /** Commits of that repository whose parents are missing, as in a shallow clone. */
  shallow: readonly string[];
  /** Set for a partial clone: what it left out, and the server that has it. */
  partial: { filter: CloneFilter; url: string } | null;
  refs: Refs;
}

/** Folder of server-side transfers, below that of conversations. What it holds at the start is left over. */
export function privateFolder(conversationsPath: string): string {
  return path.join(conversationsPath, '.private');
}

/**
 * A bare repository with no configuration but our own, for whatever needs credentials: in an agent's repository, a
 * hook, a filter, a proxy, `url.insteadOf` or a certificate authority could get at them. Its objects are handed over
 * to the agent's repository and checked out there without credentials.
 */
export class PrivateRepository {
  /** Holds objects only: `objects` and `packed-refs` are to be handed over. */
  readonly gitDir: string;
  readonly #options: PrivateRepositoryOptions;
  readonly #folder: string;

  private constructor(options: PrivateRepositoryOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.gitDir = path.join(folder, REPOSITORY);
  }

  static async use(
    options: PrivateRepositoryOptions,
    known: KnownRepository,
    work: (repository: PrivateRepository) => Promise<GitOutcome>,
  ): Promise<GitOutcome> {
    return await PrivateRepository.#within(options, async (repository) => {
      await repository.#initialize(known);
      return await work(repository);
    });
  }

  /** Clones a repository for the duration of the work; the work is skipped when the clone fails. */
  static async clone<Outcome extends GitOutcome>(
    transfer: PrivateRepositoryOptions,
    url: string,
    work: (repository: PrivateRepository, cloned: GitOutcome) => Promise<Outcome>,
    { depth, filter }: Pick<PrepareRequest, 'depth' | 'filter'> = {},
  ): Promise<Outcome | GitOutcome> {
    return await PrivateRepository.#within(transfer, async (repository) => {
      const options = [
        '--bare',
        '--no-progress',
        '--template=',
        '--no-recurse-submodules',
        // All branches are needed, so that others can be checked out, compared with and merged.
        ...(depth ? [`--depth=${depth}`, '--no-single-branch'] : []),
        ...(filter ? [`--filter=${filter}`] : []),
      ];
      const cloned = await repository.#trusted(['clone', ...options, '--', url, REPOSITORY]);
      return cloned.ok ? await work(repository, cloned) : cloned;
    });
  }

  /** Fetches what a partial clone left out of a commit's files: they are checked out without credentials. */
  async fetchFiles(commit: string): Promise<GitOutcome> {
    const list = ['rev-list', '--objects', '--no-walk', '--missing=print', '--no-object-names', commit];
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const known = await this.ask(...list);
      if (known === null) {
        return failedOutcome('There are too many files for a clone of a part of them.');
      }
      const missing = known
        .split('\n')
        .flatMap((line) => (line.startsWith('?') ? [`${line.slice(1)}\n`] : []));
      if (missing.length === 0) {
        return { ok: true, timedOut: false, output: '' };
      }
      // A server that hears of the commits sends nothing that belongs to them.
      const settings = ['-c', 'fetch.negotiationAlgorithm=noop'];
      const options = ['--no-tags', '--no-write-fetch-head', '--filter=blob:none', '--stdin'];
      const fetch = [...settings, 'fetch', ...options, 'origin'];
      const fetched = await this.#trusted(fetch, { GIT_DIR: this.gitDir }, Readable.from(missing));
      if (!fetched.ok) {
        return fetched;
      }
    }
    return failedOutcome(`The files of ${commit} could not be fetched.`);
  }

  static async #within<Outcome>(
    options: PrivateRepositoryOptions,
    work: (repository: PrivateRepository) => Promise<Outcome>,
  ): Promise<Outcome> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(path.join(options.folder, 'transfer-'));
    try {
      return await work(new PrivateRepository(options, folder));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async git(...args: string[]): Promise<GitOutcome> {
    return await this.#trusted(args, { GIT_DIR: this.gitDir });
  }

  async refs(...prefixes: string[]): Promise<Refs> {
    return parseRefs((await this.ask(...listRefs(...prefixes))) ?? '');
  }

  /** The output of a command that contacts no server; null when it fails. */
  async ask(...args: string[]): Promise<string | null> {
    const environment = { ...this.#options.environment, ...ownConfiguration(this.#folder) };
    return await runGit({ environment, wrapper: [] }, this.gitDir, args);
  }

  async packRefs(refs: Refs): Promise<void> {
    const lines = [...refs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, id]) => `${id} ${name}\n`);
    await writeFile(path.join(this.gitDir, 'packed-refs'), `# pack-refs with: sorted\n${lines.join('')}`);
  }

  async #trusted(
    args: string[],
    variables: Record<string, string> = {},
    input?: Readable,
  ): Promise<GitOutcome> {
    const cwd = this.#folder;
    return await trustedGit({
      timeoutMs: TRANSFER_TIMEOUT_MS,
      ...this.#options,
      args,
      cwd,
      variables,
      input,
    });
  }

  /** The repository stores only new objects, and reads the others from the agent's repository. */
  async #initialize({ objects, shallow, partial, refs }: KnownRepository): Promise<void> {
    const created = await this.#trusted(['init', '--quiet', '--bare', '--template=', REPOSITORY]);
    if (!created.ok) {
      throw new Error(`failed to create a repository for the transfer: ${created.output}`);
    }
    await mkdir(path.join(this.gitDir, 'objects/info'), { recursive: true });
    await writeFile(path.join(this.gitDir, 'objects/info/alternates'), `${objects}\n`);
    await this.packRefs(refs);
    for (const [key, value] of Object.entries(partial === null ? {} : partialSettings(partial))) {
      await this.git('config', key, value);
    }
    if (shallow.length > 0) {
      await writeFile(path.join(this.gitDir, 'shallow'), shallow.map((commit) => `${commit}\n`).join(''));
    }
  }
}

/** Settings that let git fetch missing objects when it needs them; see gitrepository-layout(5). */
function partialSettings({ filter, url }: { filter: CloneFilter; url: string }): Record<string, string> {
  return {
    'core.repositoryFormatVersion': '1',
    'extensions.partialClone': 'origin',
    'remote.origin.url': url,
    'remote.origin.promisor': 'true',
    'remote.origin.partialCloneFilter': filter,
  };
}

/** Full names of branches, tags and remote branches, and the objects that they point to. */
export type Refs = ReadonlyMap<string, string>;

export function listRefs(...prefixes: string[]): string[] {
  return ['for-each-ref', '--format=%(objectname) %(refname)', ...prefixes];
}

/** Reads lines of `<object id> <full name>` and skips any other line. */
export function parseRefs(text: string): Refs {
  const lines = text
    .split('\n')
    .map((line) => /^([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[^\s\p{Cc}]+)$/u.exec(line));
  return new Map(lines.flatMap((match) => (match?.[1] && match[2] ? [[match[2], match[1]]] : [])));
}

interface CloneContent {
  /** Refs under the names that they get in the agent's repository. */
  refs: Refs;
  /** The format of its object ids; null means git's default. */
  format: string | null;
  defaultBranch: string | null;
  /** The branch to check out; null if it is a tag. */
  branch: string | null;
  /** The commit to check out; null if there is none. */
  commit: string | null;
  notice: string;
}

/** Describes a branch or tag; null if it is missing. A null `asked` takes the default branch, else another one. */
export async function describeClone(
  cloned: PrivateRepository,
  asked: string | null,
): Promise<CloneContent | null> {
  const [refs, head, format] = await Promise.all([
    cloned.refs('refs/heads', 'refs/tags', 'refs/remotes/upstream'),
    cloned.ask('symbolic-ref', '--quiet', 'HEAD'),
    cloned.ask('rev-parse', '--show-object-format'),
  ]);
  const named = head?.trim().replace(LOCAL_BRANCH, '') ?? null;
  const isMissing = named !== null && !refs.has(`refs/heads/${named}`);
  const defaultBranch = isMissing ? ((await anyBranch(cloned, refs)) ?? named) : named;
  const name = asked ?? defaultBranch;
  const isBranch = name !== null && (asked === null || refs.has(`refs/heads/${name}`));
  const ref = name === null ? 'HEAD' : `refs/${isBranch ? 'heads' : 'tags'}/${name}`;
  if (asked !== null && !refs.has(ref)) {
    return null;
  }
  const commit = await cloned.ask('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`);
  const remote = [...refs].map(
    ([full, id]) => [full.replace(LOCAL_BRANCH, 'refs/remotes/origin/'), id] as const,
  );
  return {
    refs: new Map(remote),
    format: format?.trim() === 'sha256' ? 'sha256' : null,
    defaultBranch: refs.has(`refs/heads/${defaultBranch}`) ? defaultBranch : null,
    branch: isBranch ? name : null,
    commit: commit?.trim() ?? null,
    notice: asked === null && isMissing ? missingDefault(named, refs.has(ref) ? name : null) : '',
  };
}

/** What stands in for a default branch that does not exist: one with a usual name, or the newest. */
async function anyBranch(cloned: PrivateRepository, refs: Refs): Promise<string | null> {
  const usual = ['main', 'master'].find((name) => refs.has(`refs/heads/${name}`));
  const newest = ['for-each-ref', '--sort=-committerdate', '--count=1', '--format=%(refname)', 'refs/heads'];
  return usual ?? ((await cloned.ask(...newest))?.trim().replace(LOCAL_BRANCH, '') || null);
}

function missingDefault(named: string | null, taken: string | null): string {
  return taken === null
    ? 'The repository has no branch yet: its folder is empty.'
    : `The default branch of the repository, ${named}, does not exist: ${taken} is checked out.`;
}

const LOCAL_BRANCH = /^refs\/heads\//;

export interface ViewScript extends Pick<RunCommandOptions, 'timeoutMs' | 'signal' | 'input'> {
  script: string;
  args: readonly string[];
  maxOutput?: number;
}

/** Runs a script of bash as tools would, without any credentials and without fetching files from a Git LFS server. */
export async function runInView(view: ToolView, options: ViewScript): Promise<GitOutcome> {
  const { script, args, maxOutput, ...running } = options;
  const { env, ...program } = scriptInView(view, script, args);
  // Large files would be fetched from the server, without credentials: the agent may do so later.
  const variables = { ...env, GIT_TERMINAL_PROMPT: '0', GIT_LFS_SKIP_SMUDGE: '1' };
  return await outcomeOf({ ...program, ...running, env: variables }, maxOutput);
}

/** Takes over what `handOver` brings, and names the origin. Runs in a repository with `$url` and `$default` set. */
export const TAKE_OVER = `
tar -xf - -C .git
git config --local remote.origin.url "$url"
git config --local remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
[ -z "$default" ] || git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$default"
`;

/** Hands `objects`, `packed-refs` or `lfs` to a script in the view, as tar on its standard input. */
export async function handOver(
  { gitDir }: PrivateRepository,
  members: readonly ('objects' | 'packed-refs' | 'lfs')[],
  view: ToolView,
  script: ViewScript,
): Promise<GitOutcome> {
  // The cuts of a shallow history come along, or git would look for commits that are not there.
  const cuts = members.includes('packed-refs') && existsSync(path.join(gitDir, 'shallow')) ? ['shallow'] : [];
  // `objects/info` only points to the agent's own objects, so the agent's repository has no use for it.
  const command = ['tar', '-cf', '-', '-C', gitDir, '--exclude=objects/info', ...members, ...cuts];
  const archive = { command, cwd: VIEW_START, env: view.environment };
  const sender = await startProcess(archive, ['ignore', 'pipe', 'ignore']);
  try {
    const outcome = await runInView(view, { ...script, input: sender.stdout });
    return { ...outcome, ok: outcome.ok && (await sender.exited) === 0 };
  } finally {
    await sender.kill();
  }
}
