import { jsonList } from '../../common/json-access.js';
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

/** Pull requests of one repository of one user. */
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
    const { body } = await this.client.get(`${this.path}/default-branch`);
    return toBranchName(
      body ?? requireRepository((await this.client.get(`${this.path}/branches/default`)).body),
    );
  }

  /** @inheritdoc */
  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      state: 'OPEN',
      direction: 'OUTGOING',
      at: branchRef(sourceBranch),
      limit: '100',
    });
    const { body } = await this.client.get(`${this.path}/pull-requests?${query.toString()}`);
    const found = jsonList(requireRepository(body), 'values');
    return toOpenedPullRequest(found.find((value) => goesTo(value, this.address, targetBranch)));
  }

  /** @inheritdoc */
  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const created = await this.client.change(
      `${this.path}/pull-requests`,
      newPullRequest(this.address, request, targetBranch),
    );
    return requireOpened(toOpenedPullRequest(created), new URL(this.client.serverUrl).origin);
  }
}
