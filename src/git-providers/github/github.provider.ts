import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { openOrFind } from '../change-requests.js';
import { combinedError, providerErrorFromUpstream } from '../provider-errors.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
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
import { GithubChanges } from './github.changes.js';
import { GithubClient, type GithubResult } from './github.client.js';
import {
  mapAccount,
  mapMergeability,
  mapPullRequests,
  mapRepositoriesAndIssues,
  undeterminedIds,
} from './github.mapper.js';
import type { GithubPullRequests } from './github.schema.js';

export interface GithubProviderOptions {
  /** REST root of a token without host, for example `https://api.github.com`. */
  apiUrl: string;
  /** Where git finds the repositories of a token without host, `https://github.com`. */
  cloneUrl: string;
  /** Clock, chance and pauses; the machine's by default. */
  timing?: RetryTiming;
}

interface CheckedPullRequests extends GithubResult<GithubPullRequests> {
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
  private readonly timing: RetryTiming;

  constructor(
    http: GuardedHttpClient,
    private readonly options: GithubProviderOptions,
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
    this.client = new GithubClient(http, { apiUrl: options.apiUrl, timing: this.timing });
  }

  /** @inheritdoc */
  serverOf(host: string | null): string {
    // One GitHub per origin: its addresses differ in the path only.
    return new URL(this.client.baseUrl(host)).origin;
  }

  /** @inheritdoc */
  restUrl(host: string | null): string {
    return this.client.baseUrl(host);
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
    const authored =
      pullRequests.status === 'fulfilled'
        ? mapPullRequests(pullRequests.value.data, pullRequests.value.rechecked)
        : { changeRequests: [], truncated: false };
    const rest =
      others.status === 'fulfilled'
        ? mapRepositoriesAndIssues(others.value.data)
        : { recentRepositories: [], probedRepositories: [], issues: [], truncated: false };
    return {
      ...authored,
      ...rest,
      truncated: authored.truncated || rest.truncated,
      gaps: [...new Set([...gapsOf(pullRequests), ...gapsOf(others)])],
    };
  }

  /** @inheritdoc */
  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      await this.client.requireViewer(auth, call);
      return { status: 'valid' };
    } catch (error) {
      const { code } = providerErrorFromUpstream(error);
      return code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code };
    }
  }

  /** @inheritdoc */
  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    return mapAccount(await this.client.account(auth, call));
  }

  /** @inheritdoc */
  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    return await openOrFind(new GithubChanges(this.client, auth, call, request.repository), request);
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

  private async readPullRequests(auth: ProviderAuth, call: ProviderCall): Promise<CheckedPullRequests> {
    const result = await this.client.pullRequests(auth, call);
    const ids = undeterminedIds(result.data);
    const { delay, now } = this.timing;
    if (ids.length === 0 || now() + RECHECK_AFTER_MS + RECHECK_ROOM_MS > call.deadlineAt) {
      return { ...result, rechecked: new Map() };
    }
    try {
      await delay(RECHECK_AFTER_MS, call.signal);
      const { data, gaps } = await this.client.mergeability(auth, call, ids);
      return { ...result, rechecked: mapMergeability(data), gaps: [...result.gaps, ...gaps] };
    } catch (error) {
      const { code } = providerErrorFromUpstream(error);
      return { ...result, rechecked: new Map(), gaps: [...result.gaps, code] };
    }
  }
}

/** A part that failed is missing for the reason of its failure. */
function gapsOf(part: PromiseSettledResult<GithubResult<unknown>>): ProviderErrorCode[] {
  return part.status === 'fulfilled' ? part.value.gaps : [providerErrorFromUpstream(part.reason).code];
}
