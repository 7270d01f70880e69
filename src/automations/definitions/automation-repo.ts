import { PUBLIC_GIT_SERVER_NAMES, PUBLIC_GIT_SERVERS } from '../../config/git-config.js';
import { isBranchName, repositorySegments } from '../../git-providers/repository-name.js';
import type { ProviderType } from '../../git-providers/git-provider.js';

/** As on the wire. */
export interface AutomationRepo {
  url: string;
  ref: string | null;
  provider: ProviderType | null;
}

export interface RunRepository {
  name: string;
  branch: string | null;
  /** Null: the first provider with a token. */
  provider: ProviderType | null;
}

export function toRunRepository({ url, ref, provider }: AutomationRepo): RunRepository {
  const address = URL.canParse(url) ? new URL(url) : null;
  const name = (address?.pathname ?? url).replace(/^\/+|(?:\.git)?\/*$/g, '');
  const server = PUBLIC_GIT_SERVER_NAMES.find((each) => PUBLIC_GIT_SERVERS[each].host === address?.hostname);
  return { name, branch: ref, provider: provider ?? server ?? null };
}

export function repoProblem(url: string): string | null {
  const { name } = toRunRepository({ url, ref: null, provider: null });
  return repositorySegments(name) === null
    ? 'Expected owner/name, or the https address of a repository.'
    : null;
}

export function refProblem(ref: string): string | null {
  return isBranchName(ref) ? null : 'Expected the name of a branch, such as main.';
}
