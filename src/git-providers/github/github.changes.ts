import { type ChangeRequestHost, requireOpened } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.js';
import { providerErrorFromUpstream } from '../provider-errors.js';
import { requireOwnerAndName } from '../repository-name.js';
import { type GithubClient, type GithubRequestOptions, octokit } from './github.client.js';
import { toOpenedPullRequest } from './github.mapper.js';
import { restPullRequestSchema, restPullRequestsSchema, restRepositorySchema } from './github.schema.js';

/** Uses REST: GraphQL wants node ids and tells less about refusals. */
export class GithubChanges implements ChangeRequestHost {
  private readonly repository: { owner: string; repo: string };

  /** @throws GitProviderError with a reason for a name that is not `owner/name` */
  constructor(
    private readonly client: GithubClient,
    repository: string,
  ) {
    const [owner, repo] = requireOwnerAndName(repository);
    this.repository = { owner, repo };
  }

  async defaultBranch(): Promise<string | null> {
    return await this.client.retryOnce(async () => {
      const { data } = await octokit.rest.repos.get(this.parameters());
      return restRepositorySchema.parse(data).default_branch;
    });
  }

  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    return await this.client.retryOnce(async () => {
      const { data } = await octokit.rest.pulls.list({
        ...this.parameters(),
        state: 'open',
        head: `${this.repository.owner}:${sourceBranch}`,
        base: targetBranch,
        per_page: 1,
      });
      const [first] = restPullRequestsSchema.parse(data);
      return first ? toOpenedPullRequest(first) : null;
    });
  }

  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    try {
      const { data } = await octokit.rest.pulls.create({
        ...this.parameters(),
        head: request.sourceBranch,
        base: targetBranch,
        title: request.title,
        body: request.body,
        draft: request.draft,
      });
      return requireOpened(toOpenedPullRequest(restPullRequestSchema.parse(data)), this.client.origin);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  private parameters(): GithubRequestOptions & { owner: string; repo: string } {
    return {
      ...this.repository,
      ...this.client.requestOptions((response, text) => this.client.refusal(response, text)),
    };
  }
}
