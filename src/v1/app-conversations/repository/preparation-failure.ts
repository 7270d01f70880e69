import type { GitPrepareFailure } from '../../../agent-protocol/git-prepare.js';
import { tailOf } from '../start/tail-of.js';
import type { RepositoryPlan } from './repository-plan.js';

/** What a user is told when a repository could not be made: what happened, what to do, and what git wrote last. */
export function preparationFailure(
  plan: Pick<RepositoryPlan, 'provider' | 'name' | 'branch' | 'credential'>,
  failure: GitPrepareFailure,
  output: string,
): string {
  const secret = plan.credential?.password;
  const masked = secret ? output.replaceAll(secret, '**********') : output;
  return [sentence(plan, failure), tailOf(masked)].filter((part) => part !== '').join('\n');
}

function sentence(
  { provider, name, branch, credential }: Pick<RepositoryPlan, 'provider' | 'name' | 'branch' | 'credential'>,
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
