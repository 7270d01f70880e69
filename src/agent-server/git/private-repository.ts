import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { GitServerCredential } from '../../agent-protocol/git.js';
import { type GitOutcome, runGit, trustedGit } from './run-git.js';

const TRANSFER_TIMEOUT_MS = 600_000;

export interface PrivateRepositoryOptions {
  /** Where it is created; tools cannot write there. */
  folder: string;
  environment: Record<string, string>;
  credentials: readonly GitServerCredential[];
  signal: AbortSignal;
  /** The object store that it shares with the agent's repository. */
  objects: string;
  /** Commits of that repository whose parents are missing, as in a shallow clone. */
  shallow: readonly string[];
  refs: Refs;
}

/**
 * A repository without any configuration, over the objects of one that an agent may have configured. Otherwise
 * `url.insteadOf`, a proxy, hooks or a certificate authority of the agent's choice could get at the credentials.
 */
export class PrivateRepository {
  readonly #options: PrivateRepositoryOptions;
  readonly #gitDir: string;

  private constructor(options: PrivateRepositoryOptions, gitDir: string) {
    this.#options = options;
    this.#gitDir = gitDir;
  }

  /** Creates one for the duration of the work. */
  static async use(
    options: PrivateRepositoryOptions,
    work: (repository: PrivateRepository) => Promise<GitOutcome>,
  ): Promise<GitOutcome> {
    await mkdir(options.folder, { recursive: true });
    const gitDir = await mkdtemp(path.join(options.folder, '.git-'));
    try {
      const repository = new PrivateRepository(options, gitDir);
      await repository.#initialize();
      return await work(repository);
    } finally {
      await rm(gitDir, { recursive: true, force: true });
    }
  }

  /** @param args of a command that contacts a remote server */
  async git(...args: string[]): Promise<GitOutcome> {
    const { credentials, environment, signal } = this.#options;
    return await trustedGit({
      args,
      cwd: this.#gitDir,
      environment,
      credentials,
      variables: this.#variables(),
      timeoutMs: TRANSFER_TIMEOUT_MS,
      signal,
    });
  }

  /** Its current refs below the prefixes. */
  async refs(...prefixes: string[]): Promise<Refs> {
    const environment = { ...this.#options.environment, ...this.#variables() };
    const output = await runGit({ cwd: this.#gitDir, environment, wrapper: [] }, listRefs(...prefixes));
    return parseRefs(output ?? '');
  }

  #variables(): Record<string, string> {
    return { GIT_DIR: this.#gitDir, GIT_OBJECT_DIRECTORY: this.#options.objects };
  }

  async #initialize(): Promise<void> {
    const { environment, shallow, refs, signal } = this.#options;
    const created = await trustedGit({
      args: ['init', '--quiet', '--bare', '--template=', this.#gitDir],
      cwd: this.#gitDir,
      environment,
      credentials: [],
      timeoutMs: TRANSFER_TIMEOUT_MS,
      signal,
    });
    if (!created.ok) {
      throw new Error(`failed to create a repository for the transfer: ${created.output}`);
    }
    const lines = [...refs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, id]) => `${id} ${name}\n`);
    await writeFile(path.join(this.#gitDir, 'packed-refs'), `# pack-refs with: sorted\n${lines.join('')}`);
    if (shallow.length > 0) {
      await writeFile(path.join(this.#gitDir, 'shallow'), shallow.map((commit) => `${commit}\n`).join(''));
    }
  }
}

/** Full names of branches, tags and remote branches, and the objects that they point to. */
export type Refs = ReadonlyMap<string, string>;

/** `git` arguments that list refs in the form that `parseRefs` reads. */
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
