import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../../config/app-config.js';
import type { GitServerKind, ProviderType } from '../../../git-providers/git-provider.js';
import { GitProviderRegistry } from '../../../git-providers/git-provider.registry.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import type { TaskGitServer } from './suggested-task-prompt.js';

const TOKEN_VARIABLES: Record<GitServerKind, string> = {
  github: 'GITHUB_TOKEN',
  gitlab: 'GITLAB_TOKEN',
  bitbucket: 'BITBUCKET_TOKEN',
  bitbucket_dc: 'BITBUCKET_TOKEN',
};

/** Knows the git hosts of users as their agents will see them. */
@Injectable()
export class TaskGitServers {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly config: AppConfig,
  ) {}

  /** @throws GitProviderError for enterprise_sso that is not configured */
  async of(userId: string, provider: ProviderType): Promise<TaskGitServer> {
    const hosts = await this.tokens.hosts(userId);
    const host = hosts.get(provider) ?? null;
    const adapter = this.registry.providerFor(provider, host);
    const hasToken = hosts.has(provider) && this.config.agent.exposeGitTokens;
    return {
      kind: adapter.kind,
      apiUrl: gitServerApiUrl(adapter.kind, adapter.serverOf(host), this.config.git.githubApiUrl),
      tokenVariable: hasToken ? TOKEN_VARIABLES[adapter.kind] : null,
    };
  }
}

/**
 * Base address of a git host's REST API, without a trailing slash.
 *
 * @param server what the adapter calls the server (`GitProvider.serverOf`)
 * @param githubApiUrl where tokens without a host reach GitHub
 */
export function gitServerApiUrl(kind: GitServerKind, server: string, githubApiUrl: string): string {
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
