import type { GitServerDescriptor } from '../git-server.descriptor.js';

/** Bitbucket Data Center, which can live below a context path. Its tokens have no form of their own. */
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
