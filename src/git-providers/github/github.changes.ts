import type { Octokit } from '@octokit/rest';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { jsonText } from '../../common/json-access.js';
import { changeRefusal, type ChangeRequestHost, requireOpened, parsedOrNull } from '../change-requests.js';
import type { NewChangeRequest, OpenedChangeRequest, ProviderAuth, ProviderCall } from '../git-provider.js';
import { providerReason, providerErrorFromUpstream, retryOnce } from '../provider-http.js';
import { requireOwnerAndName } from '../repository-name.js';
import { githubBaseUrl, type GithubClientOptions, githubTransport } from './github.client.js';
import { githubReasons, toOpenedPullRequest } from './github.mapper.js';

/** Pull requests of one repository of one user, over REST: GraphQL wants node ids and tells less about refusals. */
export class GithubChanges implements ChangeRequestHost {
  private readonly repository: { owner: string; repo: string };
  private readonly baseUrl: string;

  /** @throws GitProviderError with a reason for a name that is not `owner/name` */
  constructor(
    private readonly octokit: Octokit,
    private readonly http: GuardedHttpClient,
    private readonly options: GithubClientOptions,
    private readonly auth: ProviderAuth,
    private readonly call: ProviderCall,
    repository: string,
  ) {
    const [owner, repo] = requireOwnerAndName(repository);
    this.repository = { owner, repo };
    this.baseUrl = githubBaseUrl(auth.host, options.apiUrl);
  }

  /** @inheritdoc */
  async defaultBranch(): Promise<string | null> {
    return await this.read(async () => {
      const { data }: { data: unknown } = await this.octokit.rest.repos.get(this.parameters());
      return jsonText(data, 'default_branch');
    });
  }

  /** @inheritdoc */
  async findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null> {
    return await this.read(async () => {
      const { data }: { data: unknown } = await this.octokit.rest.pulls.list({
        ...this.parameters(),
        state: 'open',
        head: `${this.repository.owner}:${sourceBranch}`,
        base: targetBranch,
        per_page: 1,
      });
      const [first]: unknown[] = Array.isArray(data) ? data : [];
      return toOpenedPullRequest(first);
    });
  }

  /** @inheritdoc */
  async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    try {
      const { data }: { data: unknown } = await this.octokit.rest.pulls.create({
        ...this.parameters(),
        head: request.sourceBranch,
        base: targetBranch,
        title: request.title,
        body: request.body,
        draft: request.draft,
      });
      return requireOpened(toOpenedPullRequest(data), new URL(this.baseUrl).origin);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  private async read<T>(attempt: () => Promise<T>): Promise<T> {
    return await retryOnce(attempt, this.call, this.options.timing);
  }

  private parameters(): {
    owner: string;
    repo: string;
    baseUrl: string;
    headers: { authorization: string };
    request: { fetch: ReturnType<typeof githubTransport> };
  } {
    const { token } = this.auth;
    const { now } = this.options.timing;
    return {
      ...this.repository,
      baseUrl: this.baseUrl,
      headers: { authorization: `Bearer ${token}` },
      request: {
        fetch: githubTransport(this.http, this.call, now, (response, text) =>
          changeRefusal(response, providerReason(githubReasons(parsedOrNull(text)), token), now(), text),
        ),
      },
    };
  }
}
