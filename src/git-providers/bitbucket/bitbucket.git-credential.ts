import type { GitCredential } from '../git-provider.types.js';

/**
 * Git knows the kind of a token by its user name: API tokens (stored as `email:api_token`) have one of their own
 * (https://support.atlassian.com/bitbucket-cloud/docs/using-api-tokens/), access and OAuth tokens another
 * (https://support.atlassian.com/bitbucket-cloud/docs/using-access-tokens/).
 */
export function bitbucketGitCredential(token: string): GitCredential {
  const colon = token.indexOf(':');
  return colon < 0
    ? { username: 'x-token-auth', password: token }
    : { username: 'x-bitbucket-api-token-auth', password: token.slice(colon + 1) };
}
