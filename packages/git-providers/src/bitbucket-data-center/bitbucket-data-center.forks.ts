import { z } from 'zod';
import { requireRepository } from '../change-requests.js';
import { type FoundFork, ForkHost, toFork } from '../fork-host.js';
import type { ChangeHead, OwnRights } from '../forks.js';
import { requireOwnerAndName } from '../repository-name.js';
import { knownFlag, list, object, requireFitting, requiredName, text } from '../response-schema.js';
import { slugPath } from './bitbucket-data-center.changes.js';
import type { BitbucketDataCenterClient } from './bitbucket-data-center.client.js';

const project = z.object({ key: requiredName });
const refSchema = object({
  displayId: requiredName,
  /** Absent, or hidden, once the fork is deleted. */
  repository: z.object({ slug: requiredName, project }).nullable().catch(null),
});
const pullRequestSchema = object({ fromRef: refSchema, toRef: refSchema });
const forkableSchema = object({ forkable: knownFlag });
const repositorySchema = z.object({ slug: requiredName, project, state: text });
const repositoriesSchema = object({ values: list(repositorySchema) });
type DataCenterFork = z.output<typeof repositorySchema>;

/** See https://developer.atlassian.com/server/bitbucket/rest/. A user's forks are in the project `~user`. */
export class BitbucketDataCenterForks extends ForkHost<BitbucketDataCenterClient> {
  async head(repository: string, id: number): Promise<ChangeHead | null> {
    const path = `${slugPath(repository)}/pull-requests/${id}`;
    const found = await this.client.find(path, pullRequestSchema);
    const from = found?.fromRef.repository ?? null;
    return (
      found && {
        repository: from && `${from.project.key}/${from.slug}`,
        branch: found.fromRef.displayId,
        targetBranch: found.toRef.displayId,
        ref: `refs/pull-requests/${id}/from`,
        allowsMaintainers: false,
      }
    );
  }

  async rights(repository: string): Promise<OwnRights> {
    const [key, slug] = requireOwnerAndName(repository);
    const query = new URLSearchParams({
      projectkey: key,
      name: slug,
      permission: 'REPO_WRITE',
      limit: '100',
    });
    const [found, writable] = await Promise.all([
      this.client.find(slugPath(repository), forkableSchema),
      this.client.find(`/api/latest/repos?${query.toString()}`, repositoriesSchema),
    ]);
    const push = writable?.values.some((each) => toName(each).toLowerCase() === repository.toLowerCase());
    return { push: push ?? false, fork: requireRepository(found).forkable !== false };
  }

  protected async find(repository: string): Promise<FoundFork | null> {
    const own = `~${await this.client.userName()}`.toLowerCase();
    const path = `${slugPath(repository)}/forks?limit=100`;
    const { values } = requireRepository(await this.client.find(path, repositoriesSchema));
    const fork = values.find((each) => each.project.key.toLowerCase() === own);
    return fork ? forkOf(fork) : null;
  }

  /** Into the project of the user, where the request names none. */
  protected async create(repository: string, name: string): Promise<FoundFork> {
    const created = await this.client.change(slugPath(repository), { name });
    return forkOf(requireFitting(repositorySchema, created, 'the response is no fork'));
  }

  protected async isReady(fork: string): Promise<boolean> {
    const found = await this.client.find(slugPath(fork), repositorySchema);
    return found !== null && forkOf(found).isReady === true;
  }
}

function toName({ slug, project: { key } }: DataCenterFork): string {
  return `${key}/${slug}`;
}

function forkOf(fork: DataCenterFork): FoundFork {
  const isCopying = fork.state === 'INITIALISING';
  const hasFailed = fork.state === 'INITIALISATION_FAILED';
  return toFork(toName(fork), isCopying ? 'copying' : hasFailed ? 'failed' : 'ready');
}
