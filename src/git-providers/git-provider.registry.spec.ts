import { describe, expect, it } from '@jest/globals';
import {
  type ApiGuide,
  GitProviderError,
  GitProvider,
  type GitServerKind,
  type GitCredential,
  PROVIDER_TYPES,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
} from './git-provider.js';
import { type GitProviderAdapters, GitProviderRegistry } from './git-provider.registry.js';
import type { FoundBranch, FoundRepository, Listing } from './repository-lists.js';

class NamedProvider extends GitProvider {
  constructor(readonly kind: GitServerKind) {
    super();
  }

  serverOf(): string {
    return this.kind;
  }

  apiGuide(): ApiGuide {
    throw new Error('not asked here');
  }

  findWork(): Promise<ProviderWork> {
    throw new Error('not asked here');
  }

  changeRequests(): Promise<never> {
    throw new Error('not asked here');
  }

  checkToken(): Promise<TokenCheck> {
    throw new Error('not asked here');
  }

  getUser(): Promise<ProviderUser> {
    throw new Error('not asked here');
  }

  searchRepositories(): Promise<Listing<FoundRepository>> {
    throw new Error('not asked here');
  }

  searchBranches(): Promise<Listing<FoundBranch>> {
    throw new Error('not asked here');
  }

  listInstallations(): Promise<Listing<string>> {
    throw new Error('not asked here');
  }

  cloneUrl(): string {
    throw new Error('not asked here');
  }

  gitCredential(): Promise<GitCredential> {
    throw new Error('not asked here');
  }
}

const github = new NamedProvider('github');
const gitlab = new NamedProvider('gitlab');
const cloud = new NamedProvider('bitbucket');
const dataCenter = new NamedProvider('bitbucket_dc');
const sso = new NamedProvider('gitlab');

const adapters: GitProviderAdapters = {
  servers: {
    github: () => Promise.resolve(github),
    gitlab: () => Promise.resolve(gitlab),
    bitbucket: () => Promise.resolve(cloud),
    bitbucket_dc: () => Promise.resolve(dataCenter),
  },
  enterpriseSso: () => Promise.resolve(sso),
};

describe('GitProviderRegistry', () => {
  it.each([
    ['github', null, github],
    ['github', 'github.example.com', github],
    ['gitlab', null, gitlab],
    ['gitlab', 'gitlab.example.com/root', gitlab],
    ['bitbucket', null, cloud],
    ['bitbucket', 'git.example.com/context', dataCenter],
    ['enterprise_sso', null, sso],
  ] as const)('finds the adapter for %s at %s', async (provider, host, adapter) => {
    expect(await new GitProviderRegistry(adapters).providerFor(provider, host)).toBe(adapter);
  });

  it('knows an adapter for every provider', async () => {
    const registry = new GitProviderRegistry(adapters);
    const found = await Promise.all(PROVIDER_TYPES.map((provider) => registry.providerFor(provider, null)));
    expect(found.every((adapter) => adapter instanceof GitProvider)).toBe(true);
  });

  it('refuses enterprise_sso that is not configured', async () => {
    const registry = new GitProviderRegistry({ ...adapters, enterpriseSso: null });
    expect(registry.usable).toEqual(['github', 'gitlab', 'bitbucket']);
    await expect(registry.providerFor('enterprise_sso', null)).rejects.toThrow(
      new GitProviderError('unsupported'),
    );
  });
});
