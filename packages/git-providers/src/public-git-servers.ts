export interface PublicGitServer {
  /** Names the server, and clones come from it. */
  host: string;
  apiUrl: string;
}

/** Every user may store a token of these. Names are values of `git_provider` and begin variables: `GITHUB_API_URL`. */
export const PUBLIC_GIT_SERVERS = {
  github: { host: 'github.com', apiUrl: 'https://api.github.com' },
  gitlab: { host: 'gitlab.com', apiUrl: 'https://gitlab.com/api' },
  bitbucket: { host: 'bitbucket.org', apiUrl: 'https://api.bitbucket.org/2.0' },
} as const satisfies Record<string, PublicGitServer>;

export type PublicGitServerName = keyof typeof PUBLIC_GIT_SERVERS;

export const PUBLIC_GIT_SERVER_NAMES = Object.keys(PUBLIC_GIT_SERVERS) as readonly PublicGitServerName[];

export interface GitServerAddresses {
  apiUrl: string;
  /** Also for public repositories without a token; no trailing slash. */
  cloneUrl: string;
}

/** Base address of a canonical host, such as `https://gitlab.example.com`, without a trailing slash. */
export function gitHostBaseUrl(host: string): string {
  return host.startsWith('http://') ? host : `https://${host}`;
}

export const PERMISSION_LEVELS = ['read', 'write', 'admin'] as const;
type PermissionLevel = (typeof PERMISSION_LEVELS)[number];
/** Of an installation of a GitHub App or of its tokens, by GitHub's names. */
export type GithubPermissions = Readonly<Record<string, PermissionLevel>>;
