import { describe, expect, it } from '@jest/globals';
import {
  GitProviderError,
  GitProvider,
  type GitServerKind,
  type GitCredential,
  type OpenedChangeRequest,
  PROVIDER_TYPES,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
} from './git-provider.js';
import { type GitProviderAdapters, GitProviderRegistry } from './git-provider.registry.js';

class NamedProvider extends GitProvider {
  constructor(readonly kind: GitServerKind) {
    super();
  }

  serverOf(): string {
    return this.kind;
  }

  findWork(): Promise<ProviderWork> {
    throw new Error('not asked here');
  }

  checkToken(): Promise<TokenCheck> {
    throw new Error('not asked here');
  }

  getUser(): Promise<ProviderUser> {
    throw new Error('not asked here');
  }

  openChangeRequest(): Promise<OpenedChangeRequest> {
    throw new Error('not asked here');
  }

  cloneUrl(): string {
    throw new Error('not asked here');
  }

  gitCredential(): Promise<GitCredential> {
    throw new Error('not asked here');
  }
}

const adapters: GitProviderAdapters = {
  github: new NamedProvider('github'),
  gitlab: new NamedProvider('gitlab'),
  bitbucketCloud: new NamedProvider('bitbucket'),
  bitbucketDataCenter: new NamedProvider('bitbucket_dc'),
  enterpriseSso: new NamedProvider('gitlab'),
};

describe('GitProviderRegistry', () => {
  it.each([
    ['github', null, adapters.github],
    ['github', 'github.example.com', adapters.github],
    ['gitlab', null, adapters.gitlab],
    ['gitlab', 'gitlab.example.com/root', adapters.gitlab],
    ['bitbucket', null, adapters.bitbucketCloud],
    ['bitbucket', 'git.example.com/context', adapters.bitbucketDataCenter],
    ['enterprise_sso', null, adapters.enterpriseSso],
  ] as const)('answers for %s at %s', (provider, host, adapter) => {
    expect(new GitProviderRegistry(adapters).providerFor(provider, host)).toBe(adapter);
  });

  it('knows an adapter for every provider', () => {
    const registry = new GitProviderRegistry(adapters);
    expect(
      PROVIDER_TYPES.every((provider) => registry.providerFor(provider, null) instanceof GitProvider),
    ).toBe(true);
  });

  it('refuses enterprise_sso that is not configured', () => {
    const registry = new GitProviderRegistry({ ...adapters, enterpriseSso: null });
    expect(registry.enterpriseSsoConfigured).toBe(false);
    expect(() => registry.providerFor('enterprise_sso', null)).toThrow(new GitProviderError('unsupported'));
  });
});
