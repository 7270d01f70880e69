import {
  type GitServerAddresses,
  PUBLIC_GIT_SERVER_NAMES,
  PUBLIC_GIT_SERVERS,
  type PublicGitServerName,
} from '@slipway/git-providers/public-git-servers.js';
import type { GithubAppConfig } from './github-app-config.js';
import {
  ChoiceVariable,
  IntegerVariable,
  ListVariable,
  MatchingVariable,
  MillisecondsVariable,
  PlainUrlVariable,
  Satisfies,
  TextVariable,
  UrlVariable,
} from '@slipway/configuration/variables.js';

export interface GitServerConfig extends GitServerAddresses {
  /** Whose tokens of users are renewed; null: none. */
  oauthClientId: string | null;
  oauthClientSecret: string | null;
}

/** GitHub has refresh tokens of Apps only. */
export const oauthVariable = (name: PublicGitServerName): string =>
  name === 'github' ? 'GITHUB_APP_CLIENT' : `${name.toUpperCase()}_OAUTH_CLIENT`;

const REALM = 'must be the full http(s) address of the realm, …/realms/NAME';

function hasIssuer({ issuer }: EnterpriseSsoConfig): boolean {
  return issuer !== null;
}

export class EnterpriseSsoConfig {
  @UrlVariable(
    'ENTERPRISE_SSO_ISSUER',
    'Realm of a Keycloak that keeps git tokens. By default there is none.',
    { message: REALM },
    Satisfies((issuer) => /\/realms\/[^/]+$/.test(String(issuer)), REALM),
  )
  issuer: string;

  @MatchingVariable(
    'ENTERPRISE_SSO_ALIAS',
    'Name of the identity provider in Keycloak. Required with the issuer.',
    /^[A-Za-z0-9._-]+$/,
    'must name the identity provider in Keycloak (letters, digits, . _ -)',
    { requiredIf: hasIssuer },
  )
  alias: string;

  @ChoiceVariable(
    'ENTERPRISE_SSO_KIND',
    'The git server behind it. Required with the issuer.',
    ['github', 'gitlab', 'bitbucket_dc'],
    { requiredIf: hasIssuer },
  )
  kind: 'github' | 'gitlab' | 'bitbucket_dc';

  @TextVariable(
    'ENTERPRISE_SSO_HOST',
    'Host of that git server, if it is not the public one; required for `bitbucket_dc`.',
  )
  host: string | null;

  @TextVariable(
    'ENTERPRISE_SSO_CLIENT_ID',
    "Client for version v2 of the broker's API, and for refresh tokens.",
  )
  clientId: string | null;

  @TextVariable('ENTERPRISE_SSO_CLIENT_SECRET', 'Secret of that client.', { isSecret: true })
  clientSecret: string | null;

  @ChoiceVariable(
    'ENTERPRISE_SSO_API_VERSION',
    "Version of Keycloak's broker endpoint: `v1` (GET) or `v2` (POST).",
    ['v1', 'v2'],
    { default: 'v1' },
  )
  apiVersion: 'v1' | 'v2';
}

export class GitConfig {
  @ListVariable(
    'GIT_HOST_ALLOWLIST',
    'Self-hosted git hosts that tokens may name: names, `*.suffix` or origins (`http://` only as an origin).',
  )
  hostAllowlist: string[];

  servers: Readonly<Record<PublicGitServerName, GitServerConfig>>;

  enterpriseSso: EnterpriseSsoConfig | null;

  githubApp: GithubAppConfig | null;

  @MillisecondsVariable('GIT_REQUEST_TIMEOUT_SECONDS', 'Deadline of one request to a git host.', '8', 60)
  requestTimeoutMs: number;

  @MillisecondsVariable(
    'SUGGESTED_TASKS_TIMEOUT_SECONDS',
    'How long suggested tasks wait for all providers.',
    '12',
    120,
  )
  tasksTimeoutMs: number;

  @IntegerVariable(
    'FOLLOW_POLL_SECONDS',
    'How often pull requests are read that conversations follow (`follow`). Webhooks of automations make that sooner.',
    { default: '60', minimum: 1, maximum: 86_400, unit: 'seconds' },
  )
  followPollSeconds: number;
}

export const GIT_SERVER_GROUPS = new Map(
  PUBLIC_GIT_SERVER_NAMES.map((name) => [name, serverVariables(name)] as const),
);

function serverVariables(name: PublicGitServerName): new () => GitServerConfig {
  const prefix = name.toUpperCase();
  class Variables implements GitServerConfig {
    @UrlVariable(`${prefix}_API_URL`, 'Where the requests of tokens without a host go.', {
      default: PUBLIC_GIT_SERVERS[name].apiUrl,
    })
    apiUrl: string;

    @PlainUrlVariable(
      `${prefix}_CLONE_URL`,
      `Where repositories of such tokens are cloned from, and public ones without a token. By default \`https://${PUBLIC_GIT_SERVERS[name].host}\`, or the host of another \`${prefix}_API_URL\`.`,
    )
    cloneUrl: string;

    @TextVariable(
      `${oauthVariable(name)}_ID`,
      'Client of OAuth whose tokens of users are renewed before they end (`refresh_token` of add-git-providers).',
    )
    oauthClientId: string | null;

    @TextVariable(`${oauthVariable(name)}_SECRET`, 'Its secret. Required with the client.', {
      isSecret: true,
      requiredIf: ({ oauthClientId }: GitServerConfig) => oauthClientId !== null,
    })
    oauthClientSecret: string | null;
  }
  return Variables;
}
