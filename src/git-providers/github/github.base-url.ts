import { gitHostBaseUrl } from '../git-host.js';

/** GitHub Enterprise Cloud with data residency; its API has a name of its own beside the host's. */
const DATA_RESIDENCY_HOST = /^([a-z0-9-]+)\.ghe\.com$/;

/**
 * Root of the REST API, without a slash at its end. GraphQL is at `/graphql` below it, except for Enterprise Server
 * (`…/api/v3` for REST, `…/api/graphql`), whose addresses octokit tells apart by their `/api/v3`.
 *
 * @param host canonical host of a token; null for the default address
 * @param apiUrl the default address
 */
export function githubBaseUrl(host: string | null, apiUrl: string): string {
  if (host === null) {
    return apiUrl.replace(/\/+$/, '');
  }
  const subdomain = DATA_RESIDENCY_HOST.exec(host)?.[1];
  return subdomain === undefined ? `${gitHostBaseUrl(host)}/api/v3` : `https://api.${subdomain}.ghe.com`;
}
