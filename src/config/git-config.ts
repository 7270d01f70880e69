import {
  ChoiceVariable,
  CloneUrlVariable,
  ListVariable,
  MatchingVariable,
  MillisecondsVariable,
  Satisfies,
  TextVariable,
  UrlVariable,
} from './variables.js';

/** The public service of a git provider. */
export interface PublicGitServer {
  /** Its name, and where repositories are cloned from. */
  host: string;
  apiUrl: string;
}

/** Those that every user may store a token of, whatever the operator has allowed. */
export const PUBLIC_GIT_SERVERS = {
  github: { host: 'github.com', apiUrl: 'https://api.github.com' },
  gitlab: { host: 'gitlab.com', apiUrl: 'https://gitlab.com/api' },
  bitbucket: { host: 'bitbucket.org', apiUrl: 'https://api.bitbucket.org/2.0' },
} as const satisfies Record<string, PublicGitServer>;

const REALM = 'must be the full http(s) address of the realm, …/realms/NAME';

function hasIssuer({ issuer }: EnterpriseSsoConfig): boolean {
  return issuer !== null;
}

export class EnterpriseSsoConfig {
  /** Null only while the variables are read: without an issuer this group does not exist. */
  @UrlVariable(
    'ENTERPRISE_SSO_ISSUER',
    { message: REALM },
    Satisfies((issuer) => /\/realms\/[^/]+$/.test(String(issuer)), REALM),
  )
  issuer: string;

  @MatchingVariable(
    'ENTERPRISE_SSO_ALIAS',
    /^[A-Za-z0-9._-]+$/,
    'must name the identity provider in Keycloak (letters, digits, . _ -)',
    { requiredIf: hasIssuer },
  )
  alias: string;

  @ChoiceVariable('ENTERPRISE_SSO_KIND', ['github', 'gitlab', 'bitbucket_dc'], { requiredIf: hasIssuer })
  kind: 'github' | 'gitlab' | 'bitbucket_dc';

  @TextVariable('ENTERPRISE_SSO_HOST')
  host: string | null;

  @TextVariable('ENTERPRISE_SSO_CLIENT_ID')
  clientId: string | null;

  @TextVariable('ENTERPRISE_SSO_CLIENT_SECRET')
  clientSecret: string | null;

  @ChoiceVariable('ENTERPRISE_SSO_API_VERSION', ['v1', 'v2'], { default: 'v1' })
  apiVersion: 'v1' | 'v2';
}

export class GitConfig {
  @ListVariable('GIT_HOST_ALLOWLIST')
  hostAllowlist: string[];

  @UrlVariable('GITHUB_API_URL', { default: PUBLIC_GIT_SERVERS.github.apiUrl })
  githubApiUrl: string;

  @UrlVariable('GITLAB_API_URL', { default: PUBLIC_GIT_SERVERS.gitlab.apiUrl })
  gitlabApiUrl: string;

  @UrlVariable('BITBUCKET_API_URL', { default: PUBLIC_GIT_SERVERS.bitbucket.apiUrl })
  bitbucketApiUrl: string;

  /**
   * Where repositories of tokens without a host are cloned from, and public ones without a token; no trailing slash.
   * Unless configured it follows from the address of the API.
   */
  @CloneUrlVariable('GITHUB_CLONE_URL')
  githubCloneUrl: string;

  @CloneUrlVariable('GITLAB_CLONE_URL')
  gitlabCloneUrl: string;

  @CloneUrlVariable('BITBUCKET_CLONE_URL')
  bitbucketCloneUrl: string;

  enterpriseSso: EnterpriseSsoConfig | null;

  /** Deadline of one request to a git host, milliseconds. */
  @MillisecondsVariable('GIT_REQUEST_TIMEOUT_SECONDS', '8', 60)
  requestTimeoutMs: number;

  /** How long suggested tasks wait for all providers, milliseconds. */
  @MillisecondsVariable('SUGGESTED_TASKS_TIMEOUT_SECONDS', '12', 120)
  tasksTimeoutMs: number;
}
