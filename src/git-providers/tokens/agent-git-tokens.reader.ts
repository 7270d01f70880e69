import { Injectable, Logger } from '@nestjs/common';
import { GitProviderError, type GitProvider } from '@slipway/git-providers/git-provider.js';
import { gitProviderProblem } from '../git-provider-problem.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { GIT_SERVERS } from '@slipway/git-providers/git-servers.js';
import { orFailure } from '@slipway/git-providers/provider-errors.js';
import { ProviderCalls } from '../provider-reader.js';
import type { StoredCredential } from './provider-token.repository.js';
import { TokenRenewals } from './token-renewals.js';

const TOKEN_TIMEOUT_MS = 12_000;

interface AgentGitToken {
  value: string;
  description: string;
}

interface Source {
  credential: StoredCredential;
  adapter: GitProvider;
}

/** Hands git tokens to agents, under the names of environment variables. */
@Injectable()
export class AgentGitTokensReader {
  private readonly logger = new Logger(AgentGitTokensReader.name);

  constructor(
    private readonly tokens: TokenRenewals,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  async describe(userId: string): Promise<Map<string, string>> {
    const sources = await this.sources(await this.tokens.current(userId));
    return new Map([...sources].map(([name, { credential }]) => [name, describeToken(credential)]));
  }

  /** The token, or null. @throws DomainError when the provider must be asked for it and does not give it */
  async find(userId: string, name: string): Promise<string | null> {
    const source = (await this.sources(await this.tokens.current(userId))).get(name);
    return source ? await this.read(userId, source) : null;
  }

  /** The tokens by variable name. An unavailable one is logged and left out: an agent can do much without it. */
  async list(userId: string, credentials: readonly StoredCredential[]): Promise<Map<string, AgentGitToken>> {
    const found = new Map<string, AgentGitToken>();
    for (const [name, source] of await this.sources(credentials)) {
      const { credential } = source;
      const value = await orFailure(this.askFor(userId, source));
      if (value instanceof GitProviderError) {
        const { provider } = credential;
        this.logger.warn('failed to get a git token for an agent', { provider, code: value.code });
      } else {
        found.set(name, { value, description: describeToken(credential) });
      }
    }
    return found;
  }

  private async read(userId: string, source: Source): Promise<string> {
    try {
      return await this.askFor(userId, source);
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(source.credential.provider, error) : error;
    }
  }

  private async askFor(userId: string, { credential, adapter }: Source): Promise<string> {
    return await adapter.apiToken(this.calls.withStored(TOKEN_TIMEOUT_MS, userId, credential));
  }

  /** The user's own token wins over enterprise_sso's for the same kind of server. Without a repository, an installation has none. */
  private async sources(credentials: readonly StoredCredential[]): Promise<Map<string, Source>> {
    const sources = new Map<string, Source>();
    for (const credential of credentials) {
      const isEmpty = credential.installation && credential.token === '';
      if (isEmpty || !this.registry.usable.includes(credential.provider)) {
        continue;
      }
      const adapter = await this.registry.providerFor(credential.provider, credential.host);
      const name = GIT_SERVERS[adapter.kind].tokenVariable;
      if (!sources.has(name)) {
        sources.set(name, { credential, adapter });
      }
    }
    return sources;
  }
}

function describeToken({ provider, host }: StoredCredential): string {
  return `Token of the git provider ${provider}${host === null ? '' : ` at ${host}`}`;
}
