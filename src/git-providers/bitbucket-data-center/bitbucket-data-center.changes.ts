import { type ChangeRequestHost, requireOpened, requireRepository } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import type { BitbucketDataCenterClient } from './bitbucket-data-center.client.js';
import {
  branchRef,
  type DataCenterAddress,
  goesTo,
  newPullRequest,
  toBranchName,
  toOpenedPullRequest,
} from './bitbucket-data-center.mapper.js';
import {
  branchSchema,
  openedPullRequestSchema,
  openedPullRequestsSchema,
} from './bitbucket-data-center.schema.js';

export class BitbucketDataCenterChanges implements ChangeRequestHost {
  private readonly address: DataCenterAddress;
  private readonly path: string;

  /** @throws GitProviderError with a reason for a name that is not `PROJ/slug` */
  constructor(
    private readonly client: BitbucketDataCenterClient,
    repository: string,
  ) {
    const [project, slug] = requireOwnerAndName(repository);
    this.address = { project, slug };
    this.path = `/api/latest/projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(slug)}`;
  }

  /** Its own resource since 7.5, below the branches before. */
  async defaultBranch(): Promise<string | null> {
    const branch =
      (await this.client.find(`${this.path}/default-branch`, branchSchema)) ??
      (await this.client.find(`${this.path}/branches/default`, branchSchema));
    return toBranchName(requireRepository(branch));
  }

  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      state: 'OPEN',
      direction: 'OUTGOING',
      at: branchRef(sourceBranch),
      limit: '100',
    });
    const path = `${this.path}/pull-requests?${query.toString()}`;
    const { values } = requireRepository(await this.client.find(path, openedPullRequestsSchema));
    const found = values.find((pull) => goesTo(pull, this.address, targetBranch));
    return found ? toOpenedPullRequest(found) : null;
  }

  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const created = await this.client.change(
      `${this.path}/pull-requests`,
      newPullRequest(this.address, request, targetBranch),
    );
    const opened = toOpenedPullRequest(openedPullRequestSchema.parse(created));
    return requireOpened(opened, this.client.origin);
  }
}
