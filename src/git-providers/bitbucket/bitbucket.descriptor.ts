import type { GitServerDescriptor } from '../git-server.descriptor.js';

/** User names that mean "the password is a token" in Bitbucket's git addresses. */
const GIT_USERS: ReadonlySet<string> = new Set(['x-token-auth', 'x-bitbucket-api-token-auth']);

const TOKEN_FORM =
  'Use email:api_token (the e-mail address of your Atlassian account) or an OAuth or access token';

export const bitbucket = {
  kind: 'bitbucket',
  provider: 'bitbucket',
  isPublic: true,
  ownHosts: 'none',
  tokenVariable: 'BITBUCKET_TOKEN',
  tokenProblem,
  load: async (http, options) => {
    const { BitbucketProvider } = await import('./bitbucket.provider.js');
    return new BitbucketProvider(http, options);
  },
} as const satisfies GitServerDescriptor;

function tokenProblem(token: string): string | null {
  const colon = token.indexOf(':');
  const user = colon < 0 ? null : token.slice(0, colon);
  const secret = token.slice(colon + 1);
  if (user !== null && GIT_USERS.has(user)) {
    return `${TOKEN_FORM}, without the user name that git addresses carry.`;
  }
  if (secret.startsWith('ATBB') || (user !== null && !isEmail(user))) {
    return `${TOKEN_FORM}: app passwords ended on 2026-07-28.`;
  }
  if (user !== null && (secret === '' || secret.includes(':'))) {
    return `${TOKEN_FORM}.`;
  }
  if (user === null && secret.startsWith('ATATT')) {
    return `${TOKEN_FORM}: an API token needs the e-mail address before it.`;
  }
  return null;
}

function isEmail(text: string): boolean {
  return /^[^@]+@[^@.]+(\.[^@.]+)*$/.test(text);
}
