import { bitbucketDataCenter } from './bitbucket-data-center/bitbucket-data-center.descriptor.js';
import { bitbucket } from './bitbucket/bitbucket.descriptor.js';
import type { GitServerKind, ProviderType } from './git-provider.js';
import type { GitServerDescriptor } from './git-server.descriptor.js';
import { github } from './github/github.descriptor.js';
import { gitlab } from './gitlab/gitlab.descriptor.js';

/** Every kind of git server; nothing else chooses by kind. */
export const GIT_SERVERS: { readonly [Kind in GitServerKind]: GitServerDescriptor & { kind: Kind } } = {
  github,
  gitlab,
  bitbucket,
  bitbucket_dc: bitbucketDataCenter,
};

export const TOKEN_VARIABLES: ReadonlySet<string> = new Set(
  Object.values(GIT_SERVERS).map(({ tokenVariable }) => tokenVariable),
);

/** The kind of server for a provider's tokens. Null for enterprise_sso, whose server only the configuration names. */
export function gitServerFor(provider: ProviderType, host: string | null): GitServerDescriptor | null {
  const servers: GitServerDescriptor[] = Object.values(GIT_SERVERS);
  return (
    servers.find(
      (server) =>
        server.provider === provider && (host === null ? server.isPublic : server.ownHosts !== 'none'),
    ) ?? null
  );
}
