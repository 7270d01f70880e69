import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../../config/app-config.js';
import { TOKEN_VARIABLES } from '../../../git-providers/agent-git-tokens.reader.js';
import type { ProviderType } from '../../../git-providers/git-provider.js';
import { GitProviderRegistry } from '../../../git-providers/git-provider.registry.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import type { TaskGitServer } from './suggested-task-prompt.js';

/** Finds the git server of a suggested task as the user's agent will see it. */
@Injectable()
export class TaskGitServerResolver {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly config: AppConfig,
  ) {}

  /** @throws GitProviderError for enterprise_sso that is not configured */
  async resolve(userId: string, provider: ProviderType): Promise<TaskGitServer> {
    const hosts = await this.tokens.hosts(userId);
    const host = hosts.get(provider) ?? null;
    const adapter = await this.registry.providerFor(provider, host);
    const hasToken = hosts.has(provider) && this.config.agent.exposeGitTokens;
    return {
      kind: adapter.kind,
      apiUrl: adapter.restUrl(host),
      tokenVariable: hasToken ? TOKEN_VARIABLES[adapter.kind] : null,
    };
  }
}
