import { z } from 'zod';
import { requireRepository } from '../change-requests.js';
import { type FoundFork, ForkHost } from '../fork-host.js';
import type { ChangeHead, OwnRights } from '../forks.js';
import { GitProviderError } from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import {
  fieldsOf,
  name,
  object,
  requireFitting,
  requiredList,
  requiredName,
  text,
} from '../response-schema.js';
import { repositoryPath } from './bitbucket.changes.js';
import type { BitbucketClient } from './bitbucket.client.js';
import { accountSchema, slugsSchema, workspacesSchema } from './bitbucket.schema.js';

const pullRequestSchema = object({
  source: object({
    branch: object({ name: requiredName }),
    /** The source repository; null once the fork is deleted. */
    repository: object({ full_name: name }),
  }),
  destination: object({ branch: object({ name: requiredName }) }),
});
const policySchema = object({ fork_policy: text });
const forkSchema = z.object({ full_name: requiredName });
const forksSchema = requiredList(forkSchema);
const branchesSchema = requiredList(object({ name: text }));

/** See https://developer.atlassian.com/cloud/bitbucket/rest/api-group-repositories/. */
export class BitbucketForks extends ForkHost<BitbucketClient> {
  /** Bitbucket Cloud keeps no commits of other repositories. */
  async head(repository: string, id: number): Promise<ChangeHead | null> {
    const path = `${repositoryPath(repository)}/pullrequests/${id}?fields=${fieldsOf(pullRequestSchema)}`;
    const found = await this.client.find(path, pullRequestSchema);
    return (
      found && {
        repository: found.source.repository.full_name,
        branch: found.source.branch.name,
        targetBranch: found.destination.branch.name,
        ref: null,
        allowsMaintainers: false,
      }
    );
  }

  /** Only the list of a workspace can be asked for what one may push to. */
  async rights(repository: string): Promise<OwnRights> {
    const [workspace, slug] = requireOwnerAndName(repository);
    const query = `role=contributor&q=${encodeURIComponent(`slug=${JSON.stringify(slug.toLowerCase())}`)}`;
    const [policy, mine] = await Promise.all([
      this.client.find(`${repositoryPath(repository)}?fields=${fieldsOf(policySchema)}`, policySchema),
      this.client.list(`/repositories/${workspace}?${query}`, slugsSchema, { maxPages: 1 }),
    ]);
    return {
      push: mine?.values.some((each) => each.slug === slug.toLowerCase()) ?? false,
      fork: requireRepository(policy).fork_policy !== 'no_forks',
    };
  }

  protected async find(repository: string): Promise<FoundFork | null> {
    const path = `${repositoryPath(repository)}/forks?role=contributor&pagelen=100`;
    const [own, forks] = await Promise.all([
      this.workspace(),
      this.client.list(path, forksSchema, { maxPages: 1 }),
    ]);
    const fork = requireRepository(forks).values.find(({ full_name: full }) => full.startsWith(`${own}/`));
    return fork ? { name: fork.full_name } : null;
  }

  protected async create(repository: string, slug: string): Promise<FoundFork> {
    const body = { name: slug, workspace: { slug: await this.workspace() } };
    const created = await this.client.change(`${repositoryPath(repository)}/forks`, body);
    return { name: requireFitting(forkSchema, created, 'the response is no fork').full_name };
  }

  protected async isReady(fork: string): Promise<boolean> {
    const path = `${repositoryPath(fork)}/refs/branches?pagelen=1`;
    const found = await this.client.list(path, branchesSchema, { maxPages: 1 });
    return (found?.values.length ?? 0) > 0;
  }

  /** The personal one, which has the name of the user: others may belong to another company. */
  private async workspace(): Promise<string> {
    const [account, access] = await Promise.all([
      this.client.find('/user?fields=username', accountSchema),
      this.client.list('/user/workspaces?pagelen=100', workspacesSchema, { maxPages: 1 }),
    ]);
    const own = account?.username ?? null;
    if (own === null || access?.values.some(({ workspace }) => workspace.slug === own) !== true) {
      throw new GitProviderError('unsupported', { reason: 'you have no workspace of your own to fork into' });
    }
    return own;
  }
}
