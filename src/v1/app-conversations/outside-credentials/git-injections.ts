import { Injectable } from '@nestjs/common';
import type { EgressInjection, InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { within } from '@slipway/common/async.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { AppConfig } from '../../../config/app-config.js';
import {
  isReadableWithin,
  parseReadable,
  type ReadablePattern,
} from '@slipway/egress-rules/readable-repositories.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { orFailure } from '@slipway/git-providers/provider-errors.js';
import { gitHostBaseUrl } from '@slipway/git-providers/public-git-servers.js';
import { InstallationTokens } from '../../../git-providers/tokens/installation-tokens.js';
import type { StoredCredential } from '../../../git-providers/tokens/provider-token.repository.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import { StartTaskRepository } from '../start-task.repository.js';
import type { WorkRepository } from '../agent-request/agent-inputs.reader.js';
import type { Concealed, CredentialSource } from '@slipway/egress-rules/concealer.js';
import { GIT_HEADERS, repositoryPlaces } from '@slipway/egress-rules/credential-places.js';
import type { SandboxPlaceholder } from './placeholder.repository.js';
import { readPlaces } from '@slipway/egress-rules/read-places.js';

interface Tokens {
  sandboxId: string;
  userId: string;
  /** That the user has now. */
  stored: readonly StoredCredential[];
}

type KeptGitToken = Pick<SandboxPlaceholder, 'placeholder' | 'addresses'> & {
  source: Extract<CredentialSource, { kind: 'git' }>;
};

interface GitToken {
  value: string;
  /** Of the server that it is for. */
  root: string;
}

/** Proxies wait five seconds in all. */
const PATIENCE_MS = 3_000;

/** Git tokens, which are put in outside of sandboxes: of users, and of installations that stand in for them. */
@Injectable()
export class GitInjections {
  constructor(
    private readonly installations: InstallationTokens,
    private readonly starts: StartTaskRepository,
    private readonly settings: SettingsRepository,
    private readonly config: AppConfig,
  ) {}

  /** The token of Keycloak stands for another one, which is asked for; Bitbucket's may have an address before it. */
  ownToken(stored: readonly StoredCredential[], provider: ProviderType): GitToken | null {
    const own = stored.find((each) => each.provider === provider);
    if (own === undefined || own.provider === 'enterprise_sso' || own.installation) {
      return null;
    }
    const { host, token } = own;
    const root = host === null ? this.config.git.servers[own.provider].cloneUrl : gitHostBaseUrl(host);
    // The sandbox's own loopback is reached without the proxy.
    return isLoopbackHost(URL.parse(root)?.hostname ?? '')
      ? null
      : { value: token.slice(token.indexOf(':') + 1), root };
  }

  /** Of installations, in a text. */
  issuedIn(text: string): Concealed[] {
    return this.installations.issuedIn(text).map(({ token: value, repository }) => ({
      source: { kind: 'git', provider: 'github', repository },
      value,
    }));
  }

  /** Towards which a token is put in. */
  addressesOf(source: CredentialSource, repositories: readonly string[]): readonly string[] {
    if (source.kind !== 'git') {
      return [];
    }
    return source.repository === undefined
      ? repositories
      : [`${this.config.git.servers.github.cloneUrl}/${source.repository}.git`];
  }

  /** For one repository, where an installation stands in for the user now; null where it gives none in time, which is logged. */
  async installationToken({ userId, stored }: Tokens, work: WorkRepository | null): Promise<string | null> {
    const isIts = standsIn(stored);
    return work === null || !isIts || (work.provider ?? 'github') !== 'github'
      ? null
      : await this.inTime(this.installations.token(userId, work.repository, 'sandbox'));
  }

  /** For what was kept of one token: its repositories, and others that may be read. */
  async of(tokens: Tokens, { source, placeholder, addresses }: KeptGitToken): Promise<EgressInjection[]> {
    const { provider, repository } = source;
    const work = repository === undefined ? null : { repository, provider };
    const issued = await this.installationToken(tokens, work);
    const token =
      issued === null
        ? this.ownToken(tokens.stored, provider)
        : { value: issued, root: this.config.git.servers.github.cloneUrl };
    if (token === null) {
      return [];
    }
    // The user may have had a token for another host before.
    const hosts = addresses
      .filter((address) => address.startsWith(`${token.root}/`))
      .flatMap((address) => this.placesOf(provider, address));
    const own = hosts.length === 0 ? [] : [{ placeholder, value: token.value, hosts, headers: GIT_HEADERS }];
    // Of several that fit, the first is put in: what is its own may be written to.
    return [...own, ...(await this.reading(tokens, placeholder, provider, token))];
  }

  /** Of a repository that a token is for. */
  placesOf(provider: ProviderType, cloneUrl: string): InjectionPlace[] {
    const { git, egress } = this.config;
    return repositoryPlaces(provider, cloneUrl, git.servers, egress.gitGraphql);
  }

  private async reading(
    tokens: Tokens,
    placeholder: string,
    provider: ProviderType,
    token: GitToken,
  ): Promise<EgressInjection[]> {
    const patterns = (await this.readable(tokens)).filter((each) => each.provider === provider);
    const host = tokens.stored.find((each) => each.provider === provider)?.host ?? null;
    const found = patterns.map(async (pattern): Promise<EgressInjection[]> => {
      const value =
        provider === 'github' && standsIn(tokens.stored)
          ? await this.inTime(this.installations.readToken(tokens.userId, pattern))
          : token.value;
      const hosts = this.readPlacesOf(pattern, host);
      return value === null || hosts.length === 0
        ? []
        : [{ placeholder, value, hosts, headers: GIT_HEADERS }];
    });
    return (await Promise.all(found)).flat();
  }

  /** Named by any of the conversations there, else by the settings; never beyond what the operator allows now. */
  async readable({ sandboxId, userId }: Omit<Tokens, 'stored'>): Promise<ReadablePattern[]> {
    const limits = await this.starts.limitsInSandbox(userId, sandboxId);
    const isOpen = limits.some(({ repositories_read: list = null }) => list === null);
    const usual = isOpen ? ((await this.settings.effective(userId)).repositories_read ?? []) : [];
    const named = limits.flatMap(({ repositories_read: list }) => list ?? usual);
    const ceiling = this.config.egress.repositoriesRead;
    return [...new Set(named)]
      .flatMap((text) => parseReadable(text) ?? [])
      .filter((pattern) => ceiling === null || isReadableWithin(pattern, ceiling));
  }

  /** @param host that the user's token is for; null: the public one */
  readPlacesOf(pattern: ReadablePattern, host: string | null): InjectionPlace[] {
    const { provider } = pattern;
    if (host === null) {
      return readPlaces(pattern, this.config.git.servers[provider]);
    }
    const cloneUrl = gitHostBaseUrl(host);
    const path = { github: '/api/v3', gitlab: '/api', bitbucket: '/rest/api' }[provider];
    return readPlaces(pattern, { cloneUrl, apiUrl: `${cloneUrl}${path}` });
  }

  private async inTime(asked: Promise<string>): Promise<string | null> {
    const issued = await within(PATIENCE_MS, orFailure(asked));
    return typeof issued === 'string' ? issued : null;
  }
}

function standsIn(stored: readonly StoredCredential[]): boolean {
  return stored.some(({ provider, installation }) => provider === 'github' && installation);
}
