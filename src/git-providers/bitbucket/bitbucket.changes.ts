import { type ChangeRequestHost, requireOpened, requireRepository } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import type { BitbucketClient } from './bitbucket.client.js';
import { newPullRequest, openBetween, toOpenedPullRequest } from './bitbucket.mapper.js';
import { mainBranchSchema, openedPullRequestSchema, openedPullRequestsSchema } from './bitbucket.schema.js';

export class BitbucketChanges implements ChangeRequestHost {
  private readonly path: string;

  /** @throws GitProviderError with a reason for a name that is not `workspace/slug` */
  constructor(
    private readonly client: BitbucketClient,
    private readonly repository: string,
  ) {
    this.path = `/repositories/${requireOwnerAndName(repository).map(encodeURIComponent).join('/')}`;
  }

  async defaultBranch(): Promise<string | null> {
    const repository = await this.client.find(`${this.path}?fields=mainbranch.name`, mainBranchSchema);
    return requireRepository(repository).mainbranch.name;
  }

  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      q: openBetween(this.repository, sourceBranch, targetBranch),
      fields: 'values.id,values.links.html.href',
      pagelen: '1',
    });
    const path = `${this.path}/pullrequests?${query.toString()}`;
    const page = requireRepository(await this.client.find(path, openedPullRequestsSchema));
    const [found] = page.values;
    return found ? toOpenedPullRequest(found) : null;
  }

  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const created = await this.client.change(
      `${this.path}/pullrequests`,
      newPullRequest(request, targetBranch),
    );
    return requireOpened(toOpenedPullRequest(openedPullRequestSchema.parse(created)), this.client.origin);
  }
}
