import type { GitServerDescriptor } from '../git-server.descriptor.js';

export const github = {
  kind: 'github',
  provider: 'github',
  isPublic: true,
  ownHosts: 'root',
  tokenVariable: 'GITHUB_TOKEN',
  tokenProblem: (token) =>
    token.startsWith('ghs_')
      ? 'Use a personal access token (ghp_… or github_pat_…) or a user access token: an installation token (ghs_…) has no user.'
      : null,
  load: async (http, options) => {
    const { GithubProvider } = await import('./github.provider.js');
    return new GithubProvider(http, options);
  },
} as const satisfies GitServerDescriptor;
