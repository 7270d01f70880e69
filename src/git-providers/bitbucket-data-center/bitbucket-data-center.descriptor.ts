import type { GitServerDescriptor } from '../git-server.descriptor.js';

/** Can live below a context path. Tokens have no form of their own. */
export const bitbucketDataCenter = {
  kind: 'bitbucket_dc',
  provider: 'bitbucket',
  isPublic: false,
  ownHosts: 'path',
  tokenVariable: 'BITBUCKET_TOKEN',
  tokenProblem: () => null,
  load: async (http, { timing }) => {
    const { BitbucketDataCenterProvider } = await import('./bitbucket-data-center.provider.js');
    return new BitbucketDataCenterProvider(http, { timing });
  },
} as const satisfies GitServerDescriptor;
