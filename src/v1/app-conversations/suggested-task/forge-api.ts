import type { ForgeKind } from '../../../git-providers/git-provider.types.js';

/**
 * Base address of a git host's REST API, without a trailing slash.
 *
 * @param server what the adapter calls the server (`GitProvider.serverOf`)
 * @param githubApiUrl where tokens without a host reach GitHub
 */
export function forgeApiUrl(kind: ForgeKind, server: string, githubApiUrl: string): string {
  switch (kind) {
    case 'github': {
      const usual = githubApiUrl.replace(/\/+$/, '');
      if (new URL(usual).origin === server) {
        return usual;
      }
      // Hosts with data residency have the API at a name of its own, Enterprise Server below a path.
      return new URL(server).hostname.startsWith('api.') ? server : `${server}/api/v3`;
    }
    case 'gitlab':
      return `${server}/v4`;
    case 'bitbucket':
      return server;
    case 'bitbucket_dc':
      return `${server}/rest/api/1.0`;
  }
}
