import type { GitServerDescriptor } from '../git-server.descriptor.js';

/** Tokens that act for a job, a deployment or a runner (https://docs.gitlab.com/security/tokens/). */
const MACHINE_PREFIXES = ['glcbt-', 'gldt-', 'glrt-', 'glrtr-', 'glptt-'];

/** Self-managed GitLab can live under a relative root. */
export const gitlab = {
  kind: 'gitlab',
  provider: 'gitlab',
  isPublic: true,
  ownHosts: 'path',
  tokenVariable: 'GITLAB_TOKEN',
  tokenProblem: (token) =>
    MACHINE_PREFIXES.some((prefix) => token.startsWith(prefix))
      ? 'Use a personal access token (glpat-…) or an OAuth token: job, deploy, runner and trigger tokens have no user.'
      : null,
  load: async (http, options) => {
    const { GitlabProvider } = await import('./gitlab.provider.js');
    return new GitlabProvider(http, options);
  },
} as const satisfies GitServerDescriptor;
