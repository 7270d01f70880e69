import path from 'node:path';
import type { GitPrepareAnswer } from '../../agent-protocol/git-prepare.js';
import type { AllowedPaths } from '../files/allowed-paths.js';
import { SecretMasker } from '../secret-masker.js';
import { gitSecrets } from './git-variables.js';
import { type GitPlace, prepareRepository } from './prepare-repository.js';
import type { PrepareRequest } from './prepare-schema.js';

export interface RepositoryPreparationOptions extends GitPlace {
  workspace: string;
  paths: AllowedPaths;
}

/** Makes repositories that a client wants, each one once. */
export class RepositoryPreparation {
  readonly #options: RepositoryPreparationOptions;
  readonly #running = new Map<string, Promise<GitPrepareAnswer>>();
  readonly #stopped = new AbortController();

  constructor(options: RepositoryPreparationOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /**
   * Who asks for a folder that is being made gets the answer of that attempt.
   *
   * @throws HttpError when the folder is not inside the workspace
   */
  async prepare(request: PrepareRequest): Promise<GitPrepareAnswer> {
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

  /** Ends what is under way; nothing of it is left. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#running.values());
  }

  async #prepare(folder: string, request: PrepareRequest): Promise<GitPrepareAnswer> {
    const { url, username, password } = request;
    const credentials =
      url === null || password === null
        ? []
        : [{ origin: new URL(url).origin, username: username ?? '', password }];
    const answer = await prepareRepository(
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
    return { ...answer, output: new SecretMasker(gitSecrets(credentials)).text(answer.output) };
  }
}
