import { Injectable } from '@nestjs/common';
import type { GitPrepareFailure } from '@slipway/agent-protocol/git.js';
import { withoutSecret } from '@slipway/common/secret-mask.js';
import type { ProviderType } from '../../../git-providers/git-provider.js';
import { AgentServerGit } from '../../agent-servers/agent-server.git.js';
import type { AgentServerTarget } from '../../agent-servers/sandbox-address.js';
import type { AgentDialect } from '../agent-request/agent-dialect.js';
import { StartFailure, tailOf } from './start-step.js';
import { CLONE_TIMEOUT_SECONDS, type CheckoutResult, type Clone, StockCheckout } from './stock-checkout.js';

export interface CheckoutPlan extends Clone {
  provider: ProviderType;
  /** As the user named it. */
  name: string;
}

/** Checks repositories out inside sandboxes. Credentials reach no address, argument, configuration or log. */
@Injectable()
export class RepositoryCheckout {
  constructor(
    private readonly git: AgentServerGit,
    private readonly stock: StockCheckout,
  ) {}

  /** Does nothing where the repository exists; returns notes for the user. Throws StartFailure. */
  async run(
    target: AgentServerTarget,
    dialect: AgentDialect,
    plan: CheckoutPlan,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { ok, failure, output, notices } = dialect.hasExtensions
      ? await this.throughRoute(target, plan, signal)
      : await this.stock.run(target, plan, signal);
    if (!ok) {
      throw new StartFailure('repository', checkoutFailure(plan, failure ?? 'failed', output));
    }
    return notices;
  }

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
}

/** For the user: what happened, what to do, and the end of git's output. */
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
