import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { jsonAt, jsonList } from '../../common/json-access.js';
import { hasAgentInstructions } from '../agent-instructions.js';
import { openOrFind } from '../change-requests.js';
import { GapLog, type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
  GitProviderError,
  GitProvider,
  type GitCredential,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProbedRepository,
  type ProviderAuth,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type Signal,
  type TokenCheck,
} from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import { BitbucketDataCenterClient } from './bitbucket-data-center.client.js';
import {
  type DataCenterFolder,
  type DataCenterPullRequest,
  type DataCenterRepository,
  toFailingChecks,
  toFolder,
  toProviderUser,
  toPullRequest,
  toRepository,
  toUserSlug,
} from './bitbucket-data-center.mapper.js';
import { BitbucketDataCenterChanges } from './bitbucket-data-center.changes.js';

export interface BitbucketDataCenterProviderOptions {
  timing?: RetryTiming;
}

const DASHBOARD = '/api/latest/dashboard/pull-requests?role=AUTHOR&state=OPEN&order=NEWEST&limit=50';
const RECENT_REPOSITORIES = '/api/latest/profile/recent/repos?limit=25&permission=REPO_WRITE';
const BUILD_STATS = '/build-status/latest/commits/stats';
/** Says who asks in a response header, also on servers that have no resource for it. */
const WHO_AM_I = '/api/1.0/application-properties';
const MAX_PROBES = 5;

/**
 * Bitbucket Data Center (and its predecessor, Server). Two rounds of requests: the user's pull requests beside the
 * recently used repositories, then the builds of all pull requests in one question beside repository probes.
 *
 * Servers before 5.10 lack one list or the other, and some OAuth apps may not use the dashboard: a missing list is
 * a gap `unsupported`, the other is still used. There are no issues.
 */
export class BitbucketDataCenterProvider extends GitProvider {
  readonly kind = 'bitbucket_dc';
  private readonly timing: RetryTiming;

  constructor(
    private readonly http: GuardedHttpClient,
    options: BitbucketDataCenterProviderOptions = {},
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
  }

  /** @inheritdoc */
  serverOf(host: string | null): string {
    return host === null ? '' : gitHostBaseUrl(host);
  }

  /** @inheritdoc */
  async findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork> {
    const client = this.clientFor(auth, call);
    const gaps = new GapLog();
    const dashboard = readList(client, DASHBOARD, toPullRequest);
    const recent = readList(client, RECENT_REPOSITORIES, toRepository);
    const [pulls, repositories, failing, probes] = await Promise.all([
      dashboard,
      recent,
      dashboard.then(({ items }) => this.failingChecks(client, items, gaps)),
      recent.then(({ items }) =>
        Promise.all(probeCandidates(items).map((item) => this.probe(client, item, gaps))),
      ),
    ]);
    const failures = [pulls.failure, repositories.failure].filter((failure) => failure !== null);
    if (pulls.failure && repositories.failure) {
      throw failures.find(({ code }) => code === 'unauthorized') ?? pulls.failure;
    }
    for (const failure of failures) {
      gaps.note(failure);
    }
    return {
      changeRequests: pulls.items.map(({ commit, ...pull }) => ({ ...pull, failingChecks: failing(commit) })),
      issues: [],
      recentRepositories: repositories.items.map(({ activity }) => activity),
      probedRepositories: probes.filter((probe): probe is ProbedRepository => probe !== null),
      truncated: pulls.hasMore,
      gaps: gaps.codes(),
    };
  }

  /** @inheritdoc */
  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      await this.userName(this.clientFor(auth, call));
      return { status: 'valid' };
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      return error.code === 'unauthorized'
        ? { status: 'invalid' }
        : { status: 'unverified', code: error.code };
    }
  }

  /** @inheritdoc */
  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    const client = this.clientFor(auth, call);
    const slug = toUserSlug(await this.userName(client));
    const { body } = await client.get(`/api/latest/users/${slug}?avatarSize=64`);
    const user = toProviderUser(body, client.serverUrl);
    if (!user) {
      throw new GitProviderError('unavailable', {
        cause: new Error('the user resource answered no account'),
      });
    }
    return user;
  }

  /** @inheritdoc */
  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    const client = this.clientFor(auth, call);
    return await openOrFind(new BitbucketDataCenterChanges(client, request.repository), request);
  }

  /** @inheritdoc */
  cloneUrl(host: string | null, repository: string): string {
    if (host === null) {
      throw new GitProviderError('unsupported', { reason: 'a Data Center repository needs a host' });
    }
    return `${gitHostBaseUrl(host)}/scm/${requireOwnerAndName(repository).join('/')}.git`;
  }

  /** Tokens stand in for the password of their own user only (Atlassian, "HTTP access tokens"), so the server is asked. */
  async gitCredential(auth: ProviderAuth, call: ProviderCall): Promise<GitCredential> {
    const username = await this.userName(this.clientFor(auth, call));
    return { username, password: auth.token };
  }

  private clientFor(auth: ProviderAuth, call: ProviderCall): BitbucketDataCenterClient {
    return new BitbucketDataCenterClient(this.http, this.timing, auth, call);
  }

  /** The resource is public: a server that lets a request in without naming its user has taken it as anonymous. */
  private async userName(client: BitbucketDataCenterClient): Promise<string> {
    const { headers } = await client.get(WHO_AM_I);
    const encoded = headers.get('x-ausername') ?? '';
    if (encoded === '') {
      throw new GitProviderError('unsupported', { cause: new Error('the server named no user') });
    }
    return decoded(encoded);
  }

  /** The verdict per commit, from one question for all. */
  private async failingChecks(
    client: BitbucketDataCenterClient,
    pulls: readonly DataCenterPullRequest[],
    gaps: GapLog,
  ): Promise<(commit: string | null) => Signal> {
    const commits = [...new Set(pulls.map(({ commit }) => commit).filter((commit) => commit !== null))];
    if (commits.length === 0) {
      return () => 'unknown';
    }
    try {
      const { body } = await client.ask(BUILD_STATS, commits);
      if (body === null) {
        throw new GitProviderError('unsupported');
      }
      return (commit) => (commit === null ? 'unknown' : toFailingChecks(body, commit));
    } catch (error) {
      gaps.note(error);
      return () => 'unknown';
    }
  }

  /** Three looks at once; null when one of them failed or nothing can be added to the repository. */
  private async probe(
    client: BitbucketDataCenterClient,
    { activity }: DataCenterRepository,
    gaps: GapLog,
  ): Promise<ProbedRepository | null> {
    const [project, slug] = activity.name.split('/');
    const browse = `/api/latest/projects/${project}/repos/${slug}/browse`;
    const [root, microagents, skills] = await Promise.all(
      ['', '/.openhands/microagents', '/.openhands/skills'].map((folder) =>
        readFolder(client, `${browse}${folder}?limit=500`, gaps),
      ),
    );
    // Without commits there is no default branch and no root (404).
    if (!root || !microagents || !skills || root.names.length === 0) {
      return null;
    }
    const found = hasAgentInstructions({
      repository: activity.name,
      rootEntries: root.names,
      microagents: microagents.names,
      skills: skills.names,
    });
    return found || root.complete ? { ...activity, writable: true, hasAgentInstructions: found } : null;
  }
}

interface Reading<T> {
  items: T[];
  hasMore: boolean;
  failure: GitProviderError | null;
}

async function readList<T>(
  client: BitbucketDataCenterClient,
  path: string,
  toItem: (value: unknown) => T | null,
): Promise<Reading<T>> {
  try {
    const { body } = await client.get(path);
    return {
      items: jsonList(body, 'values')
        .map(toItem)
        .filter((item) => item !== null),
      hasMore: jsonAt(body, 'isLastPage') === false,
      failure: body === null ? new GitProviderError('unsupported') : null,
    };
  } catch (error) {
    if (!(error instanceof GitProviderError)) {
      throw error;
    }
    return { items: [], hasMore: false, failure: error };
  }
}

async function readFolder(
  client: BitbucketDataCenterClient,
  path: string,
  gaps: GapLog,
): Promise<DataCenterFolder | null> {
  try {
    return toFolder((await client.get(path)).body);
  } catch (error) {
    gaps.note(error);
    return null;
  }
}

/** The most recently used repositories an agent's instructions could be added to. */
function probeCandidates(repositories: readonly DataCenterRepository[]): DataCenterRepository[] {
  return repositories.filter(({ activity, fork }) => activity.usable && !fork).slice(0, MAX_PROBES);
}

/** User names travel percent-encoded; one that is not is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) {
      return text;
    }
    throw error;
  }
}
