import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { AgentGitTokensReader } from '../../git-providers/tokens/agent-git-tokens.reader.js';
import { TOKEN_VARIABLES } from '@slipway/git-providers/git-servers.js';
import type { StoredCredential } from '../../git-providers/tokens/provider-token.repository.js';
import { type ClearSecret, CustomSecretRepository } from './custom-secret.repository.js';

/** A secret of an agent's tools, in clear: for agents only, never for a log or another response. */
export interface AgentSecret {
  value: string;
  description: string | null;
}

export interface AgentSecretDescription {
  name: string;
  description: string | null;
}

/** Which may be seen. */
export type SecretFilter = (name: string, isGitToken: boolean) => boolean;

/** What is given of a custom secret. */
export type SecretShown = (secret: ClearSecret) => Promise<string>;

export const inClear: SecretShown = async ({ value }) => value;

const ALL: SecretFilter = () => true;

/** What the SDK asks for when it clones: `github_token`. */
const SDK_TOKEN_NAMES: ReadonlySet<string> = new Set([...TOKEN_VARIABLES].map((name) => name.toLowerCase()));

/**
 * What the tools of a user's agents get as environment variables: custom secrets under their names, and git tokens as
 * `GITHUB_TOKEN`, `GITLAB_TOKEN` and `BITBUCKET_TOKEN` unless the operator withholds them
 * (`AGENT_EXPOSE_GIT_TOKENS=false`). A custom secret of such a name wins. Those of the organization come last, and are only
 * given to conversations: no route has them.
 */
@Injectable()
export class AgentSecretsReader {
  constructor(
    private readonly secrets: CustomSecretRepository,
    private readonly gitTokens: AgentGitTokensReader,
    private readonly config: AppConfig,
  ) {}

  /**
   * Those that may be seen, by name, as `shown` has them. A git token that is not available at the moment is left out and logged.
   * @param credentials all of the user's git credentials, from `ProviderTokenRepository.list`
   * @throws SecretDecryptionError when a stored value is not readable with the configured keys
   */
  async forUser(
    userId: string,
    credentials: readonly StoredCredential[],
    isVisible: SecretFilter,
    shown = inClear,
  ): Promise<Map<string, AgentSecret>> {
    const [tokens, stored] = await Promise.all([
      this.config.agent.exposeGitTokens
        ? this.gitTokens.list(userId, credentials)
        : new Map<string, AgentSecret>(),
      this.secrets.readEach([userId, INSTALLATION_ORGANIZATION_ID]),
    ]);
    const visible = async (secrets: ClearSecret[]): Promise<[string, AgentSecret][]> =>
      await Promise.all(
        secrets
          .filter(({ name, phase }) => phase === null && isVisible(name, false))
          .map(async (secret): Promise<[string, AgentSecret]> => {
            return [secret.name, { value: await shown(secret), description: secret.description }];
          }),
      );
    const given = stored(userId);
    const own = await visible(given);
    const names = new Set(given.filter(({ name }) => isVisible(name, false)).map(({ name }) => name));
    return new Map<string, AgentSecret>([
      ...(await visible(stored(INSTALLATION_ORGANIZATION_ID).filter(({ name }) => !names.has(name)))),
      ...[...tokens].filter(([name]) => isVisible(name, true)),
      ...own,
    ]);
  }

  /** What the setup of a sandbox alone gets, by name, as `shown` has it. @throws SecretDecryptionError */
  async forSetup(userId: string, isVisible: SecretFilter, shown: SecretShown): Promise<Map<string, string>> {
    const stored = await this.secrets.readEach([userId, INSTALLATION_ORGANIZATION_ID]);
    const own = stored(userId);
    const names = new Set(own.map(({ name }) => name));
    const all = [...stored(INSTALLATION_ORGANIZATION_ID).filter(({ name }) => !names.has(name)), ...own];
    const given = all.filter(({ name, phase }) => phase === 'setup' && isVisible(name, false));
    return new Map(await Promise.all(given.map(async (each) => [each.name, await shown(each)] as const)));
  }

  /** Custom secrets whose values are put in outside of sandboxes; the user's own of a name win. @throws SecretDecryptionError */
  async outside(userId: string): Promise<ClearSecret[]> {
    return await this.secrets.readOutside(userId, INSTALLATION_ORGANIZATION_ID);
  }

  /** Names and descriptions of the user's own, by name. */
  async describe(userId: string, isVisible = ALL): Promise<AgentSecretDescription[]> {
    const [tokens, custom] = await Promise.all([
      this.gitTokenDescriptions(userId),
      this.secrets.describe(userId),
    ]);
    const all = new Map<string, string | null>([
      ...[...tokens].filter(([name]) => isVisible(name, true)),
      ...custom.flatMap(({ name, description, phase }) =>
        phase === null && isVisible(name, false) ? [[name, description] as const] : [],
      ),
    ]);
    return [...all]
      .map(([name, description]) => ({ name, description }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * The value of one of the user's own, as `shown` has it; null when there is none of that name. Git tokens have the names of the SDK too, in lower case.
   * @throws DomainError when it is a git token that its provider does not hand out at the moment
   */
  async find(userId: string, name: string, isVisible = ALL, shown = inClear): Promise<string | null> {
    const custom = isVisible(name, false) ? await this.secrets.readOne(userId, name) : null;
    if (custom !== null) {
      return custom.phase === null ? await shown(custom) : null;
    }
    if (SDK_TOKEN_NAMES.has(name)) {
      return this.find(userId, name.toUpperCase(), isVisible, shown);
    }
    return isVisible(name, true) && this.config.agent.exposeGitTokens
      ? await this.gitTokens.find(userId, name)
      : null;
  }

  private async gitTokenDescriptions(userId: string): Promise<Map<string, string>> {
    return this.config.agent.exposeGitTokens ? await this.gitTokens.describe(userId) : new Map();
  }
}
