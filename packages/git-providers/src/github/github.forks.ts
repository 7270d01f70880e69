import { z } from 'zod';
import { type FoundFork, ForkHost } from '../fork-host.js';
import type { ChangeHead, OwnRights } from '../forks.js';
import { nullIfNotFound, providerErrorFromUpstream } from '../provider-errors.js';
import { requireOwnerAndName } from '../repository-name.js';
import { flag, knownFlag, object, requiredList, requiredName, requireFitting } from '../response-schema.js';
import { type GithubClient, octokit } from './github.client.js';

const pullSchema = z.object({
  head: z.object({
    ref: requiredName,
    /** The source repository; null once the fork is deleted. */
    repo: z.object({ full_name: requiredName }).nullable().catch(null),
  }),
  base: z.object({ ref: requiredName }),
  maintainer_can_modify: flag,
});
const repositorySchema = object({ permissions: object({ push: knownFlag }), allow_forking: knownFlag });
const forkSchema = z.object({ full_name: requiredName });
const branchesSchema = requiredList(z.unknown());

/** See https://docs.github.com/en/rest/repos/forks. */
export class GithubForks extends ForkHost<GithubClient> {
  async head(repository: string, number: number): Promise<ChangeHead | null> {
    const absent = this.client.absent('pull request', 404);
    const path = `${repositoryPath(repository)}/pulls/${number}`;
    const found = await this.client.read(path, pullSchema, absent).catch(nullIfNotFound);
    return (
      found && {
        repository: found.data.head.repo?.full_name ?? null,
        branch: found.data.head.ref,
        targetBranch: found.data.base.ref,
        ref: `refs/pull/${number}/head`,
        allowsMaintainers: found.data.maintainer_can_modify,
      }
    );
  }

  async rights(repository: string): Promise<OwnRights> {
    const absent = this.client.absent('repository', 404);
    const { data } = await this.client.read(repositoryPath(repository), repositorySchema, absent);
    return { push: data.permissions.push !== false, fork: data.allow_forking !== false };
  }

  /** GitHub answers a creation with the fork that exists, and chooses a name that is free. */
  protected find(): Promise<null> {
    return Promise.resolve(null);
  }

  protected async create(repository: string): Promise<FoundFork> {
    const [owner, repo] = requireOwnerAndName(repository);
    try {
      const options = this.client.requestOptions((response, said) => this.client.refusal(response, said));
      const { data } = await octokit.rest.repos.createFork({ owner, repo, ...options });
      const { full_name: name } = requireFitting(forkSchema, data, 'the response is no fork');
      return { name };
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  protected async isReady(fork: string): Promise<boolean> {
    const absent = this.client.absent('fork', 404, 409);
    const path = `${repositoryPath(fork)}/branches?per_page=1`;
    const found = await this.client.read(path, branchesSchema, absent).catch(nullIfNotFound);
    return (found?.data.length ?? 0) > 0;
  }
}

/** @throws GitProviderError with a reason for a name that is not `owner/name` */
function repositoryPath(repository: string): string {
  return `/repos/${requireOwnerAndName(repository).join('/')}`;
}
