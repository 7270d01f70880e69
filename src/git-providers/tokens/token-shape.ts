import type { ProviderType } from '../git-provider.types.js';

const MAX_TOKEN_BYTES = 8 * 1024;

/** GitLab tokens that act for a job, a deployment or a runner (https://docs.gitlab.com/security/tokens/). */
const GITLAB_MACHINE_PREFIXES = ['glcbt-', 'gldt-', 'glrt-', 'glrtr-', 'glptt-'];

/** User names that stand for "the password is a token" in Bitbucket's git addresses. */
const BITBUCKET_GIT_USERS: ReadonlySet<string> = new Set(['x-token-auth', 'x-bitbucket-api-token-auth']);

const BITBUCKET_FORM =
  'Use email:api_token (the e-mail address of your Atlassian account) or an OAuth or access token';

const PROBLEMS: Record<ProviderType, (token: string, host: string | null) => string | null> = {
  github: githubProblem,
  gitlab: gitlabProblem,
  // A host means Data Center, whose tokens have no form of their own.
  bitbucket: (token, host) => (host === null ? bitbucketCloudProblem(token) : null),
  enterprise_sso: () => null,
};

/**
 * A sentence that names the form wanted when a token can never work with its provider, or null. Judges what can
 * be seen without asking the provider, and never the length of a token (formats grow). The sentence never
 * contains any part of the token.
 *
 * @param host Canonical host the token is stored with; null for the provider's own service.
 */
export function tokenShapeProblem(provider: ProviderType, host: string | null, token: string): string | null {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    return 'A token consists of ASCII letters, digits and punctuation, without white space or control characters.';
  }
  if (token.length > MAX_TOKEN_BYTES) {
    return 'A token has at most 8192 bytes.';
  }
  return PROBLEMS[provider](token, host);
}

function githubProblem(token: string): string | null {
  return token.startsWith('ghs_')
    ? 'Use a personal access token (ghp_… or github_pat_…) or a user access token: an installation token (ghs_…) has no user.'
    : null;
}

function gitlabProblem(token: string): string | null {
  return GITLAB_MACHINE_PREFIXES.some((prefix) => token.startsWith(prefix))
    ? 'Use a personal access token (glpat-…) or an OAuth token: job, deploy, runner and trigger tokens have no user.'
    : null;
}

function bitbucketCloudProblem(token: string): string | null {
  const colon = token.indexOf(':');
  const user = colon < 0 ? null : token.slice(0, colon);
  const secret = token.slice(colon + 1);
  if (user !== null && BITBUCKET_GIT_USERS.has(user)) {
    return `${BITBUCKET_FORM}, without the user name that git addresses carry.`;
  }
  if (secret.startsWith('ATBB') || (user !== null && !isEmail(user))) {
    return `${BITBUCKET_FORM}: app passwords ended on 2026-07-28.`;
  }
  if (user !== null && (secret === '' || secret.includes(':'))) {
    return `${BITBUCKET_FORM}.`;
  }
  if (user === null && secret.startsWith('ATATT')) {
    return `${BITBUCKET_FORM}: an API token needs the e-mail address before it.`;
  }
  return null;
}

function isEmail(text: string): boolean {
  return /^[^@]+@[^@.]+(\.[^@.]+)*$/.test(text);
}
