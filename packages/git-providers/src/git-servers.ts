import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import type { PublicGitServerName } from './public-git-servers.js';
import { BITBUCKET_DATA_CENTER_WEBHOOKS } from './bitbucket-data-center/bitbucket-data-center.webhooks.js';
import { BITBUCKET_WEBHOOKS } from './bitbucket/bitbucket.webhooks.js';
import type { GitServerOptions } from './change-requests.js';
import {
  type GitProvider,
  GitProviderError,
  type GitServerKind,
  type ProviderType,
  type ToldChangeRequest,
} from './git-provider.js';
import type { HostWebhooks } from './host-webhooks.js';
import { GITHUB_WEBHOOKS } from './github/github.webhooks.js';
import { GITLAB_WEBHOOKS } from './gitlab/gitlab.webhooks.js';

export type WorkItem = 'change' | 'issue';

/** What is known of a kind of git server before its adapter is loaded. */
interface GitServer {
  readonly provider: PublicGitServerName;
  /** Whether tokens without a host go to it. */
  readonly isPublic: boolean;
  /** Whether a token's own host may have servers: none, at its root, or below a path too. */
  readonly ownHosts: 'none' | 'root' | 'path';
  readonly tokenVariable: string;
  /** A sentence with the right form for a token that can never work; it contains no part of the token. */
  readonly tokenProblem: (token: string) => string | null;
  readonly webhooks: HostWebhooks;
  /** Path of change requests and issues below that of their repository. */
  readonly pages: Record<WorkItem, string>;
  /** The page of a repository, by the address that it is cloned from; the same without `.git` by default. */
  readonly repositoryPage?: (cloneUrl: string) => string;
  /** Loaded on demand: the schemas and octokit would add about 80 ms to every start. */
  readonly load: () => Promise<new (http: GuardedHttpClient, options: GitServerOptions) => GitProvider>;
}

/** Tokens that act for a job, a deployment or a runner (https://docs.gitlab.com/security/tokens/). */
const GITLAB_MACHINES = ['glcbt-', 'gldt-', 'glrt-', 'glrtr-', 'glptt-'];

/** Every kind of git server; nothing else chooses by kind. */
export const GIT_SERVERS: { readonly [Kind in GitServerKind]: GitServer & { readonly kind: Kind } } = {
  github: {
    kind: 'github',
    provider: 'github',
    isPublic: true,
    ownHosts: 'root',
    tokenVariable: 'GITHUB_TOKEN',
    tokenProblem: (token) =>
      token.startsWith('ghs_')
        ? 'Use a personal access token (ghp_… or github_pat_…) or a user access token: an installation token (ghs_…) has no user.'
        : null,
    webhooks: GITHUB_WEBHOOKS,
    pages: { change: 'pull', issue: 'issues' },
    load: async () => (await import('./github/github.provider.js')).GithubProvider,
  },
  gitlab: {
    kind: 'gitlab',
    provider: 'gitlab',
    isPublic: true,
    // Below a relative root.
    ownHosts: 'path',
    tokenVariable: 'GITLAB_TOKEN',
    tokenProblem: (token) =>
      GITLAB_MACHINES.some((prefix) => token.startsWith(prefix))
        ? 'Use a personal access token (glpat-…) or an OAuth token: job, deploy, runner and trigger tokens have no user.'
        : null,
    webhooks: GITLAB_WEBHOOKS,
    pages: { change: '-/merge_requests', issue: '-/issues' },
    load: async () => (await import('./gitlab/gitlab.provider.js')).GitlabProvider,
  },
  bitbucket: {
    kind: 'bitbucket',
    provider: 'bitbucket',
    isPublic: true,
    ownHosts: 'none',
    tokenVariable: 'BITBUCKET_TOKEN',
    tokenProblem: bitbucketTokenProblem,
    webhooks: BITBUCKET_WEBHOOKS,
    pages: { change: 'pull-requests', issue: 'issues' },
    load: async () => (await import('./bitbucket/bitbucket.provider.js')).BitbucketProvider,
  },
  bitbucket_dc: {
    kind: 'bitbucket_dc',
    provider: 'bitbucket',
    isPublic: false,
    // Below a context path.
    ownHosts: 'path',
    tokenVariable: 'BITBUCKET_TOKEN',
    // Tokens have no form of their own.
    tokenProblem: () => null,
    webhooks: BITBUCKET_DATA_CENTER_WEBHOOKS,
    pages: { change: 'pull-requests', issue: 'issues' },
    repositoryPage: (cloneUrl) => cloneUrl.replace(/\/scm\/([^/]+)\/([^/]+)$/, '/projects/$1/repos/$2'),
    load: async () =>
      (await import('./bitbucket-data-center/bitbucket-data-center.provider.js')).BitbucketDataCenterProvider,
  },
};

export const TOKEN_VARIABLES: ReadonlySet<string> = new Set(
  Object.values(GIT_SERVERS).map(({ tokenVariable }) => tokenVariable),
);

/** The kind of server for a provider's tokens. Null for enterprise_sso, whose server only the configuration names. */
export function gitServerFor(
  provider: ProviderType,
  host: string | null,
): (typeof GIT_SERVERS)[GitServerKind] | null {
  return (
    Object.values(GIT_SERVERS).find(
      (server) =>
        server.provider === provider && (host === null ? server.isPublic : server.ownHosts !== 'none'),
    ) ?? null
  );
}

interface WorkPlace {
  /** The host of the credentials. */
  host: string | null;
  repository: string;
  item: WorkItem;
  /** 0 for the repository itself. */
  number: number;
}

/** Returns the page of a change request or issue; null for a name that no repository of the server can have. */
export function workPage(
  adapter: Pick<GitProvider, 'kind' | 'cloneUrl'>,
  { host, repository, item, number }: WorkPlace,
): string | null {
  const { pages, repositoryPage = (url) => url }: GitServer = GIT_SERVERS[adapter.kind];
  try {
    const page = repositoryPage(adapter.cloneUrl(host, repository).replace(/\.git$/, ''));
    return number === 0 ? page : `${page}/${pages[item]}/${number}`;
  } catch (error) {
    if (error instanceof GitProviderError) {
      return null;
    }
    throw error;
  }
}

const WEBHOOKS = Object.values(GIT_SERVERS).map(({ webhooks }) => webhooks);

export const WEBHOOK_SOURCES = WEBHOOKS.map(({ source }) => source);

export const WEBHOOK_EVENT_KEYS = [...new Set(WEBHOOKS.flatMap(({ eventTypes }) => eventTypes))];

/** Returns null for a source that is not a git server. */
export function webhooksOf(source: string): HostWebhooks | null {
  return WEBHOOKS.find((webhooks) => webhooks.source === source) ?? null;
}

/** Returns the provider whose tokens are for the hosts that send this source's events. */
export function providerOfSource(source: string): ProviderType {
  return Object.values(GIT_SERVERS).find(({ webhooks }) => webhooks.source === source)?.provider ?? 'github';
}

const MOST_NUMBERS = 100;

/** Which change request an event is about; null for an event without a repository. */
export function toldChangeRequest(webhooks: HostWebhooks, payload: unknown): ToldChangeRequest | null {
  const { repository, numbers, shas } = webhooks.told(payload);
  return typeof repository === 'string'
    ? {
        repository,
        numbers: numbers.filter(isItsNumber).slice(0, MOST_NUMBERS),
        shas: shas.filter((sha) => typeof sha === 'string'),
      }
    : null;
}

function isItsNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31;
}

/** User names that mean "the password is a token" in Bitbucket's git addresses. */
const BITBUCKET_GIT_USERS: ReadonlySet<string> = new Set(['x-token-auth', 'x-bitbucket-api-token-auth']);

const BITBUCKET_TOKEN_FORM =
  'Use email:api_token (the e-mail address of your Atlassian account) or an OAuth or access token';

function bitbucketTokenProblem(token: string): string | null {
  const colon = token.indexOf(':');
  const user = colon < 0 ? null : token.slice(0, colon);
  const secret = token.slice(colon + 1);
  if (user !== null && BITBUCKET_GIT_USERS.has(user)) {
    return `${BITBUCKET_TOKEN_FORM}, without the user name that git addresses carry.`;
  }
  if (secret.startsWith('ATBB') || (user !== null && !isEmail(user))) {
    return `${BITBUCKET_TOKEN_FORM}: app passwords ended on 2026-07-28.`;
  }
  if (user !== null && (secret === '' || secret.includes(':'))) {
    return `${BITBUCKET_TOKEN_FORM}.`;
  }
  if (user === null && secret.startsWith('ATATT')) {
    return `${BITBUCKET_TOKEN_FORM}: an API token needs the e-mail address before it.`;
  }
  return null;
}

function isEmail(text: string): boolean {
  return /^[^@]+@[^@.]+(\.[^@.]+)*$/.test(text);
}
