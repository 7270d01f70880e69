import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { withoutSecret } from '@slipway/common/secret-mask.js';
import type { GitIdentity, GitPrepareFailure } from '@slipway/agent-protocol/git.js';
import { DomainError, type ErrorKind } from '../../../common/errors/domain-error.js';
import { toHexId } from '../../../common/identifiers.js';
import type { GitCredential, ProviderType } from '../../../git-providers/git-provider.js';
import {
  type CloneAccess,
  RepositoryAccessService,
} from '../../../git-providers/repository-access.service.js';
import { AgentServerCommands } from '../../agent-servers/agent-server.commands.js';
import { AgentServerGit } from '../../agent-servers/agent-server.git.js';
import { AgentServerHttp } from '../../agent-servers/agent-server.http.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import type { AgentDialect } from '../agent-request/agent-settings.js';
import { newBranchOf, type StartTask } from '../start-task.entity.js';
import type { StartContext } from './await-sandbox.step.js';
import { cloneScript, NOTICE_LINE, shellQuote } from './clone-script.js';
import { StartFailure, tailOf } from './start-failure.js';

/** Failures that may be over in a moment: the step is tried again. */
const TRANSIENT: readonly ErrorKind[] = ['rate_limited', 'bad_gateway', 'gateway_timeout', 'unavailable'];
const COMMAND_TIMEOUT_SECONDS = 60;
const CLONE_TIMEOUT_SECONDS = 600;
/** Its credential helper would answer every server that a submodule names. */
const NO_PARTS =
  'Submodules and files of Git LFS are not fetched: only agent servers of this service can do that safely.';

/** What is to be checked out in a sandbox. */
export interface CheckoutPlan {
  provider: ProviderType;
  /** As the user named it. */
  name: string;
  /** http(s), without credentials. */
  url: string;
  /** Null: anonymously. */
  credential: GitCredential | null;
  /** Absolute. */
  folder: string;
  /** Null: the default branch. */
  branch: string | null;
  /** Branch for the conversation's work, made from the other one; null: none. */
  newBranch: string | null;
  submodules: boolean;
  /** Whether files of Git LFS are fetched. */
  lfs: boolean;
  /** Who commits there. */
  identity: GitIdentity;
}

/** Result of a checkout. */
interface CheckoutResult {
  ok: boolean;
  failure: GitPrepareFailure | null;
  /** The end of what git wrote. */
  output: string;
  /** What is not as the user may expect. */
  notices: string[];
}

/** Checks repositories out inside of sandboxes. Credentials reach no address, argument, configuration or log. */
@Injectable()
export class RepositoryCheckout {
  constructor(
    private readonly git: AgentServerGit,
    private readonly commands: AgentServerCommands,
    private readonly http: AgentServerHttp,
  ) {}

  /**
   * Does nothing where the repository exists.
   *
   * @returns what is not as the user may expect
   * @throws StartFailure with the end of git's output
   */
  async run(
    target: AgentServerTarget,
    dialect: AgentDialect,
    plan: CheckoutPlan,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { ok, failure, output, notices } =
      dialect === 'slipway'
        ? await this.throughRoute(target, plan, signal)
        : await this.withCommands(target, plan, signal);
    if (!ok) {
      throw new StartFailure('repository', checkoutFailure(plan, failure ?? 'failed', output));
    }
    return notices;
  }

  /** Our agent server has a route for it. */
  private async throughRoute(
    target: AgentServerTarget,
    plan: CheckoutPlan,
    signal: AbortSignal,
  ): Promise<CheckoutResult> {
    return this.git.prepare(
      target,
      {
        url: plan.url,
        directory: plan.folder,
        branch: plan.branch,
        new_branch: plan.newBranch,
        username: plan.credential?.username ?? null,
        password: plan.credential?.password ?? null,
        identity: plan.identity,
        submodules: plan.submodules,
        lfs: plan.lfs,
        timeout: CLONE_TIMEOUT_SECONDS,
      },
      signal,
    );
  }

  private async withCommands(
    target: AgentServerTarget,
    plan: CheckoutPlan,
    signal: AbortSignal,
  ): Promise<CheckoutResult> {
    const secretFile = plan.credential ? `/tmp/slipway-${randomUUID()}` : null;
    if (plan.credential && secretFile !== null) {
      // The agent server logs the text of commands; this file is gone before git starts.
      const { username, password } = plan.credential;
      await this.http.upload(target, secretFile, `${username}\n${password}\n`, signal);
    }
    const { exitCode, output } = await this.commands.run(target, {
      command: cloneScript(plan, secretFile),
      cwd: null,
      timeoutSeconds: CLONE_TIMEOUT_SECONDS,
      signal,
    });
    const ok = exitCode === 0;
    const notices = [...output.matchAll(NOTICE_LINE)].map(([, notice = '']) => notice);
    if (plan.submodules || plan.lfs) {
      notices.push(NO_PARTS);
    }
    return { ok, failure: ok ? null : failureOfOutput(output), output, notices };
  }
}

interface PreparedFolder {
  workingDir: string;
  notices: string[];
}

/** PREPARING_REPOSITORY: makes the folder that the agent works in, with the repository in it. Repeatable. */
@Injectable()
export class PrepareRepositoryStep {
  constructor(
    private readonly commands: AgentServerCommands,
    private readonly access: RepositoryAccessService,
    private readonly checkout: RepositoryCheckout,
  ) {}

  /**
   * @param identity of the user's commits
   * @returns absolute folder that the agent works in, and what is not as the user may expect there
   * @throws StartFailure
   */
  async run(context: StartContext, identity: GitIdentity, signal: AbortSignal): Promise<PreparedFolder> {
    const { task, sandbox, dialect } = context;
    const { sandbox_id: givenSandbox, selected_repository: repository } = task.request;
    if (task.workingDir !== null) {
      // The parent conversation prepared it.
      return { workingDir: task.workingDir, notices: [] };
    }
    if (repository === null) {
      const committer = givenSandbox === null ? identity : null;
      return { workingDir: await this.makeWorkingFolder(context, committer, signal), notices: [] };
    }
    const base = await this.makeWorkingFolder(context, null, signal);
    // A sandbox that was used before may have a folder of the repository's name.
    const parent = givenSandbox === null ? base : `${base}/${toHexId(task.appConversationId)}`;
    const folder = `${parent.replace(/\/+$/, '')}/${repository.split('/').at(-1) ?? repository}`;
    const { url, credential, provider } = await this.findAccess(task, repository);
    const { selected_branch: branch, clone_submodules: submodules, fetch_lfs: lfs } = task.request;
    const notices = await this.checkout.run(
      sandbox,
      dialect,
      {
        provider,
        name: repository,
        url,
        credential,
        folder,
        branch,
        newBranch: branch === null ? newBranchOf(task.appConversationId) : null,
        submodules: submodules ?? false,
        lfs: lfs ?? false,
        identity,
      },
      signal,
    );
    return { workingDir: folder, notices };
  }

  /** @throws StartFailure for a repository that cannot be cloned */
  private async findAccess(task: StartTask, repository: string): Promise<CloneAccess> {
    try {
      return await this.access.cloneAccess(task.userId, task.request.git_provider, repository);
    } catch (error) {
      if (error instanceof DomainError && !TRANSIENT.includes(error.kind)) {
        throw new StartFailure(
          'repository',
          `The repository ${repository} cannot be cloned. ${error.message}`,
          {
            cause: error,
          },
        );
      }
      throw error;
    }
  }

  /**
   * Our agent server is in its working folder already; for a stock one the specification names the folder.
   *
   * @param identity makes the folder a repository in which this identity commits; null: it stays a plain folder
   */
  private async makeWorkingFolder(
    { sandbox, dialect, specWorkingDir }: StartContext,
    identity: GitIdentity | null,
    signal: AbortSignal,
  ): Promise<string> {
    const enter =
      dialect === 'stock' && specWorkingDir !== null
        ? [`folder=${shellQuote(specWorkingDir)}`, ENTER_WORKSPACE]
        : [];
    const call = {
      command: ['set -e', ...enter, ...(identity === null ? [] : initCommands(identity)), 'pwd -P'].join(
        '\n',
      ),
      cwd: null,
      timeoutSeconds: COMMAND_TIMEOUT_SECONDS,
      signal,
    };
    const { exitCode, stdout, output } = await (dialect === 'slipway'
      ? this.commands.runShort(sandbox, call)
      : this.commands.run(sandbox, call));
    const folder = stdout.trim().split('\n').at(-1) ?? '';
    if (exitCode !== 0 || !folder.startsWith('/')) {
      throw new StartFailure(
        'sandbox',
        `The working folder could not be made in the sandbox.\n${tailOf(output)}`,
      );
    }
    return folder;
  }
}

/** Backends say where the working folder of the specification is, where they may. */
const ENTER_WORKSPACE = 'folder=${OH_WORKSPACE_PATH:-$folder}; mkdir -p -- "$folder"; cd -- "$folder"';

/** Does nothing in a sandbox without git: an agent may have other work there. */
function initCommands({ name, email }: GitIdentity): string[] {
  return [
    'if command -v git >/dev/null; then',
    '  [ -e .git ] || git init --quiet >&2',
    `  git config user.name ${shellQuote(name)} && git config user.email ${shellQuote(email)}`,
    'fi',
  ];
}

/** What git, curl and the large git servers write in English; the first match counts. */
const FAILURE_PATTERNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404/i, 'repository_not_found'],
  [
    /could not resolve|failed to connect|couldn't connect|connection (refused|reset|timed out)/i,
    'unreachable',
  ],
];

/** Why a clone failed, by its output. */
export function failureOfOutput(output: string): GitPrepareFailure {
  return FAILURE_PATTERNS.find(([pattern]) => pattern.test(output))?.[1] ?? 'failed';
}

/** Explains a failure to the user: what happened, what to do, and the end of git's output. */
export function checkoutFailure(
  plan: Pick<CheckoutPlan, 'provider' | 'name' | 'branch' | 'credential'>,
  failure: GitPrepareFailure,
  output: string,
): string {
  const shown = withoutSecret(output, plan.credential?.password);
  return [sentence(plan, failure), tailOf(shown)].filter((part) => part !== '').join('\n');
}

function sentence(
  { provider, name, branch, credential }: Pick<CheckoutPlan, 'provider' | 'name' | 'branch' | 'credential'>,
  failure: GitPrepareFailure,
): string {
  const repository = `The repository ${name}`;
  switch (failure) {
    case 'authentication':
      return credential === null
        ? `${repository} wants credentials: store a token for ${provider} in the settings.`
        : `${repository} could not be cloned, the server refused the ${provider} token (401 or 403): store a new one that may read it.`;
    case 'repository_not_found':
      return credential === null
        ? `${repository} was not found by its name without a token: check the name, or store a token for ${provider}.`
        : `${repository} was not found: check the name, and whether the ${provider} token may see it.`;
    case 'branch_not_found':
      return `The branch ${branch ?? ''} does not exist in ${name}: check selected_branch.`;
    case 'unreachable':
      return `${repository} could not be cloned, its server cannot be reached from the sandbox.`;
    case 'directory_not_empty':
      return `${repository} could not be cloned, its folder in the sandbox has other content: start without sandbox_id.`;
    case 'no_space':
      return `${repository} could not be cloned, there is no space left in the sandbox.`;
    case 'timeout':
      return `${repository} could not be cloned in time.`;
    case 'failed':
      return `${repository} could not be cloned.`;
  }
}
