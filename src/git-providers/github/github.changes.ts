import { changeRefusal, type ChangeRequestHost, requireOpened } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest, ProviderAuth, ProviderCall } from '../git-provider.js';
import { parsedOrNull, providerErrorFromUpstream, providerReason } from '../provider-errors.js';
import { requireOwnerAndName } from '../repository-name.js';
import type { GithubClient, GithubRequestOptions } from './github.client.js';
import { githubReasons, toOpenedPullRequest } from './github.mapper.js';
import {
  refusalSchema,
  restPullRequestSchema,
  restPullRequestsSchema,
  restRepositorySchema,
} from './github.schema.js';

/** Uses REST: GraphQL wants node ids and tells less about refusals. */
export class GithubChanges implements ChangeRequestHost {
  private readonly repository: { owner: string; repo: string };

  /** @throws GitProviderError with a reason for a name that is not `owner/name` */
  constructor(
    private readonly client: GithubClient,
    private readonly auth: ProviderAuth,
    private readonly call: ProviderCall,
    repository: string,
  ) {
    const [owner, repo] = requireOwnerAndName(repository);
    this.repository = { owner, repo };
  }

  async defaultBranch(): Promise<string | null> {
    return await this.client.retryOnce(this.call, async () => {
      const { data } = await this.client.octokit.rest.repos.get(this.parameters());
      return restRepositorySchema.parse(data).default_branch;
    });
  }

  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    return await this.client.retryOnce(this.call, async () => {
      const { data } = await this.client.octokit.rest.pulls.list({
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
      const { data } = await this.client.octokit.rest.pulls.create({
        ...this.parameters(),
        head: request.sourceBranch,
        base: targetBranch,
        title: request.title,
        body: request.body,
        draft: request.draft,
      });
      const { origin } = new URL(this.client.baseUrl(this.auth.host));
      return requireOpened(toOpenedPullRequest(restPullRequestSchema.parse(data)), origin);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  private parameters(): GithubRequestOptions & { owner: string; repo: string } {
    const options = this.client.requestOptions(this.auth, this.call, (response, text) => {
      const { token } = this.auth;
      const reasons = githubReasons(refusalSchema.parse(parsedOrNull(text)));
      return changeRefusal(response, providerReason(reasons, token), this.client.now(), {
        text,
        token,
      });
    });
    return { ...this.repository, ...options };
  }
}
