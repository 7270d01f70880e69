import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../../config/app-config.js';
import type { ForgeKind, ProviderType } from '../../../git-providers/git-provider.types.js';
import { GitProviderRegistry } from '../../../git-providers/git-provider.registry.js';
import { ProviderTokensReader } from '../../../git-providers/tokens/provider-tokens.reader.js';
import { forgeApiUrl } from './forge-api.js';
import type { TaskForge } from './suggested-task.js';

const TOKEN_VARIABLES: Record<ForgeKind, string> = {
  github: 'GITHUB_TOKEN',
  gitlab: 'GITLAB_TOKEN',
  bitbucket: 'BITBUCKET_TOKEN',
  bitbucket_dc: 'BITBUCKET_TOKEN',
};

/** Knows the git hosts of users as their agents will see them. */
@Injectable()
export class TaskForges {
  constructor(
    private readonly tokens: ProviderTokensReader,
    private readonly registry: GitProviderRegistry,
    private readonly config: AppConfig,
  ) {}

  /** @throws GitProviderError for enterprise_sso that is not configured */
  async of(userId: string, provider: ProviderType): Promise<TaskForge> {
    const hosts = await this.tokens.hosts(userId);
    const host = hosts.get(provider) ?? null;
    const adapter = this.registry.providerFor(provider, host);
    const hasToken = hosts.has(provider) && this.config.agent.exposeGitTokens;
    return {
      kind: adapter.kind,
      apiUrl: forgeApiUrl(adapter.kind, adapter.serverOf(host), this.config.git.githubApiUrl),
      tokenVariable: hasToken ? TOKEN_VARIABLES[adapter.kind] : null,
    };
  }
}
