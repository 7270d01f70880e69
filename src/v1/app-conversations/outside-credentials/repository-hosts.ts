import { Injectable } from '@nestjs/common';
import type { InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { AppConfig } from '../../../config/app-config.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import { ConversationRepository } from '../conversation.repository.js';
import { StartTaskRepository } from '../start-task.repository.js';
import { GitInjections } from './git-injections.js';
import { PlaceholderRepository } from './placeholder.repository.js';

interface ConnectedHost {
  addresses: string[];
  /** Its token is one that sandboxes get in clear. */
  isClear: boolean;
}

/** Where a sandbox finds the repositories that it works in, and those that it may read. */
@Injectable()
export class RepositoryHosts {
  constructor(
    private readonly placeholders: PlaceholderRepository,
    private readonly conversations: ConversationRepository,
    private readonly starts: StartTaskRepository,
    private readonly tokens: ProviderTokenRepository,
    private readonly git: GitInjections,
    private readonly config: AppConfig,
  ) {}

  /** What the user has tokens for. */
  async connected(userId: string): Promise<ConnectedHost[]> {
    const hosts = await this.tokens.hosts(userId);
    return [...hosts].map(([provider, host]) => {
      const isClear = provider === 'enterprise_sso';
      if (host !== null || isClear) {
        return { addresses: host === null ? [] : [host], isClear };
      }
      const { cloneUrl, apiUrl } = this.config.git.servers[provider];
      return { addresses: [cloneUrl, apiUrl], isClear };
    });
  }

  /** Of repositories with a token, and of those that are cloned without. */
  async places(userId: string, sandboxId: string): Promise<InjectionPlace[]> {
    const [kept, working, starting, readable, hosts] = await Promise.all([
      this.placeholders.ofRepositories(sandboxId),
      this.conversations.repositoriesInSandbox(sandboxId),
      this.starts.repositoriesInSandbox(sandboxId),
      this.git.readable({ sandboxId, userId }),
      this.tokens.hosts(userId),
    ]);
    const withToken = kept.flatMap(({ provider, addresses }) =>
      addresses.flatMap((address) => this.git.placesOf(provider, address)),
    );
    const { servers } = this.config.git;
    const without = [...working, ...starting].flatMap(({ repository, provider }) =>
      provider === 'enterprise_sso'
        ? []
        : this.git.placesOf(provider, `${servers[provider].cloneUrl}/${repository}.git`),
    );
    return [
      ...withToken,
      ...without,
      ...readable.flatMap((pattern) => this.git.readPlacesOf(pattern, hosts.get(pattern.provider) ?? null)),
    ];
  }
}
