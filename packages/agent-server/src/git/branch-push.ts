import type { GitPushResponse, GitServerCredential, PushRequest } from '@slipway/agent-protocol/git.js';
import type { WorkspaceFiles } from '../files/workspace-files.js';
import { SecretMasker } from '../secret-masker.js';
import type { ToolView } from '../tool-view.js';
import { gitSecrets } from './run-git.js';
import { RemoteAccess } from './remote-access.js';
import { runGit } from './run-git.js';

const TIMEOUT_MS = 120_000;

interface BranchPushOptions {
  view: ToolView;
  files: WorkspaceFiles;
  /** Tools cannot write there: see `PrivateRepository`. */
  privateFolder: string;
}

/** Pushes the branch of a repository for the service, whose credentials pass only through memory. */
export class BranchPush {
  readonly #options: BranchPushOptions;

  constructor(options: BranchPushOptions) {
    this.#options = options;
  }

  /** Without a branch, the one checked out; never the default branch. @throws WorkspaceFileError */
  async push(given: string, request: PushRequest): Promise<GitPushResponse> {
    const folder = await this.#options.files.resolve(given);
    const branch = request.branch ?? (await this.#nameOf(folder, 'HEAD'));
    if (branch === null) {
      return { ok: false, branch, output: 'No branch of a repository is checked out.' };
    }
    const main = await this.#nameOf(folder, 'refs/remotes/origin/HEAD');
    if (main === `origin/${branch}`) {
      return { ok: false, branch, output: `${branch} is the default branch; commit to another one.` };
    }
    const credentials = credentialsOf(request);
    const access = new RemoteAccess({ ...this.#options, credentials: () => credentials });
    const { ok, output } = await access.push(folder, branch, AbortSignal.timeout(TIMEOUT_MS));
    return { ok, branch, output: new SecretMasker(gitSecrets(credentials)).text(output) };
  }

  async #nameOf(folder: string, reference: string): Promise<string | null> {
    const name = await runGit(this.#options.view, folder, ['symbolic-ref', '--quiet', '--short', reference]);
    return name?.trim() || null;
  }
}

function credentialsOf({ url, username, password }: PushRequest): GitServerCredential[] {
  return password === null ? [] : [{ origin: new URL(url).origin, username: username ?? '', password }];
}
