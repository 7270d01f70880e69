import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { GitCredential } from '../../agent-protocol/git.js';
import { runGit, type GitOutcome, trustedGit } from './run-git.js';
import { parseRefs, type Refs } from './repository-preparation.js';

const TIMEOUT_MS = 600_000;

export interface PrivateRepositoryOptions {
  /** Where it may be made; tools cannot write there. */
  folder: string;
  environment: Record<string, string>;
  credentials: readonly GitCredential[];
  signal: AbortSignal;
  /** Folder of the objects that it shares with the agent's repository. */
  objects: string;
  /** That repository's commits whose parents it does not have. */
  shallow: readonly string[];
  refs: Refs;
}

/**
 * A repository without a configuration, over the objects of one that an agent may have configured: `url.insteadOf`, a
 * proxy, hooks or a certificate authority of the agent's choice would otherwise get at the credentials.
 */
export class PrivateRepository {
  readonly #options: PrivateRepositoryOptions;
  readonly #gitDir: string;

  private constructor(options: PrivateRepositoryOptions, gitDir: string) {
    this.#options = options;
    this.#gitDir = gitDir;
  }

  /** Makes one for as long as the work takes. */
  static async use(
    options: PrivateRepositoryOptions,
    work: (repository: PrivateRepository) => Promise<GitOutcome>,
  ): Promise<GitOutcome> {
    await mkdir(options.folder, { recursive: true });
    const gitDir = await mkdtemp(path.join(options.folder, '.git-'));
    try {
      const repository = new PrivateRepository(options, gitDir);
      await repository.#fill();
      return await work(repository);
    } finally {
      await rm(gitDir, { recursive: true, force: true });
    }
  }

  /** @param args of a command that speaks with another server */
  async git(...args: string[]): Promise<GitOutcome> {
    const { credentials, environment, signal } = this.#options;
    return await trustedGit({
      args,
      cwd: this.#gitDir,
      environment,
      credentials,
      variables: this.#variables(),
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  }

  /** What it knows by now, of names that begin so. */
  async refs(...prefixes: string[]): Promise<Refs> {
    const environment = { ...this.#options.environment, ...this.#variables() };
    const args = ['for-each-ref', '--format=%(objectname) %(refname)', ...prefixes];
    return parseRefs((await runGit({ cwd: this.#gitDir, environment, wrapper: [] }, args)) ?? '');
  }

  #variables(): Record<string, string> {
    return { GIT_DIR: this.#gitDir, GIT_OBJECT_DIRECTORY: this.#options.objects };
  }

  async #fill(): Promise<void> {
    const { environment, shallow, refs, signal } = this.#options;
    const made = await trustedGit({
      args: ['init', '--quiet', '--bare', '--template=', this.#gitDir],
      cwd: this.#gitDir,
      environment,
      credentials: [],
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (!made.ok) {
      throw new Error(`a repository for the transfer could not be made: ${made.output}`);
    }
    const lines = [...refs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, id]) => `${id} ${name}\n`);
    await writeFile(path.join(this.#gitDir, 'packed-refs'), `# pack-refs with: sorted\n${lines.join('')}`);
    if (shallow.length > 0) {
      await writeFile(path.join(this.#gitDir, 'shallow'), shallow.map((commit) => `${commit}\n`).join(''));
    }
  }
}
