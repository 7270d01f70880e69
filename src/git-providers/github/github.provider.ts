import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { openOrFind } from '../change-requests.js';
import {
  combinedError,
  providerErrorFromUpstream,
  type RetryTiming,
  SYSTEM_RETRY_TIMING,
} from '../provider-http.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
  GitProviderError,
  GitProvider,
  type GitCredential,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
} from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import { githubBaseUrl, type GithubAnswer, GithubClient, createOctokit } from './github.client.js';
import {
  mapPullRequests,
  mapRecheck,
  mapRepositoriesAndIssues,
  mapUser,
  undeterminedIds,
} from './github.mapper.js';
import { GithubChanges } from './github.changes.js';

export interface GithubProviderOptions {
  /** REST root of a token without host, for example `https://api.github.com`. */
  apiUrl: string;
  /** Where git finds the repositories of a token without host, `https://github.com`. */
  cloneUrl: string;
  /** Clock, chance and pauses; the machine's by default. */
  timing?: RetryTiming;
}

interface PullRequestAnswer extends GithubAnswer {
  /** `mergeable` by node id where it was read again. */
  rechecked: ReadonlyMap<string, string>;
}

/** How long GitHub is given to compute whether pull requests merge; reading them has started that. */
const RECHECK_AFTER_MS = 1_000;
/** Time that must be left for the recheck itself. */
const RECHECK_ROOM_MS = 1_500;

/** GitHub.com and Enterprise Server: two GraphQL requests side by side, and a third for what was not computed yet. */
export class GithubProvider extends GitProvider {
  readonly kind = 'github';
  private readonly client: GithubClient;
  private readonly octokit = createOctokit();
  private readonly timing: RetryTiming;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GithubProviderOptions,
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
    this.client = new GithubClient(http, { apiUrl: options.apiUrl, timing: this.timing });
  }

  /** @inheritdoc */
  serverOf(host: string | null): string {
    // One GitHub per origin: its addresses differ in the path only.
    return new URL(githubBaseUrl(host, this.options.apiUrl)).origin;
  }

  /** @inheritdoc */
  async findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork> {
    const [pullRequests, others] = await Promise.allSettled([
      this.readPullRequests(auth, call),
      this.client.repositoriesAndIssues(auth, call),
    ]);
    if (pullRequests.status === 'rejected' && others.status === 'rejected') {
      throw combinedError([pullRequests.reason, others.reason]);
    }
    const first = valueOrGap(pullRequests);
    const second = valueOrGap(others);
    const { changeRequests, ...authored } = mapPullRequests(first.data, first.rechecked ?? new Map());
    const { truncated, ...rest } = mapRepositoriesAndIssues(second.data);
    return {
      changeRequests,
      ...rest,
      truncated: truncated || authored.truncated,
      gaps: [...new Set([...first.gaps, ...second.gaps])],
    };
  }

  /** @inheritdoc */
  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      await this.client.viewer(auth, call);
      return { status: 'valid' };
    } catch (error) {
      const { code } = providerErrorFromUpstream(error);
      return code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code };
    }
  }

  /** @inheritdoc */
  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    const user = mapUser(await this.client.user(auth, call));
    if (!user) {
      throw new GitProviderError('unavailable', { cause: new Error('GET /user answered no account') });
    }
    return user;
  }

  /** @inheritdoc */
  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    const options = { apiUrl: this.options.apiUrl, timing: this.timing };
    const pullRequests = new GithubChanges(this.octokit, this.http, options, auth, call, request.repository);
    return await openOrFind(pullRequests, request);
  }

  /** @inheritdoc */
  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireOwnerAndName(repository).join('/')}.git`;
  }

  /** Any user name would do; this one is what GitHub's own documents use. */
  gitCredential({ token }: ProviderAuth): Promise<GitCredential> {
    return Promise.resolve({ username: 'x-access-token', password: token });
  }

  private async readPullRequests(auth: ProviderAuth, call: ProviderCall): Promise<PullRequestAnswer> {
    const answer = await this.client.pullRequests(auth, call);
    const ids = undeterminedIds(answer.data);
    const { delay, now } = this.timing;
    if (ids.length === 0 || now() + RECHECK_AFTER_MS + RECHECK_ROOM_MS > call.deadlineAt) {
      return { ...answer, rechecked: new Map() };
    }
    try {
      await delay(RECHECK_AFTER_MS, call.signal);
      const { data, gaps } = await this.client.mergeability(auth, call, ids);
      return { ...answer, rechecked: mapRecheck(data), gaps: [...answer.gaps, ...gaps] };
    } catch (error) {
      return {
        ...answer,
        rechecked: new Map(),
        gaps: [...answer.gaps, providerErrorFromUpstream(error).code],
      };
    }
  }
}

/** A part that failed has no data, and its code as the gap. */
function valueOrGap<T extends GithubAnswer>(
  result: PromiseSettledResult<T>,
): { data: unknown; gaps: ProviderErrorCode[]; rechecked?: ReadonlyMap<string, string> } {
  return result.status === 'fulfilled'
    ? result.value
    : { data: null, gaps: [providerErrorFromUpstream(result.reason).code] };
}
