import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { Clock } from '@slipway/common/clock.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { invalidGitToken } from '../git-provider-problem.js';
import type {
  CallBounds,
  ProviderErrorCode,
  ProviderType,
  TokenCheck,
} from '@slipway/git-providers/git-provider.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { ProviderCalls } from '../provider-reader.js';
import {
  type NewToken,
  planTokenChanges,
  type ProviderTokenInputs,
  type ProviderTokenWarning,
  type TokenChange,
} from './plan-token-changes.js';
import { ProviderTokenRepository, type TokenToStore } from './provider-token.repository.js';
import { StandIns } from './stand-ins.js';
import { TokenRenewals } from './token-renewals.js';

/** Changes that have passed every check; made by `prepare` only. */
interface PreparedTokens {
  readonly changes: readonly PreparedChange[];
  readonly warnings: ProviderTokenWarning[];
}

type PreparedChange = Exclude<TokenChange, NewToken> | ({ kind: 'set' } & TokenToStore);

interface CheckedToken {
  /** The successor, when the check itself made the provider rotate the token. */
  token: NewToken;
  verdict: TokenCheck;
}

/** Deadline of all checks together; a single request has the HTTP client's shorter one. */
const CHECKS_TIMEOUT_MS = 12_000;

const UNVERIFIED_REASONS: Record<ProviderErrorCode, string> = {
  unauthorized: 'the provider did not accept the credentials behind it',
  rate_limited: 'the provider limits requests at the moment',
  insufficient_scope: 'it may not read the account',
  sso_required: 'an organisation wants it authorised for single sign-on',
  query_too_large: 'the provider found the question too large',
  blocked_by_policy: 'the provider refuses it, whatever its scopes are',
  unsupported: 'the provider cannot check it',
  needs_login: 'the login of its user is not known',
  unavailable: 'the provider could not be reached',
  timeout: 'the provider did not answer in time',
  not_linked: 'the account is not linked to the git host',
  reauth_required: 'the git host wants a new sign-in',
};

/**
 * Stores tokens in two steps: `prepare` asks providers outside of any transaction, `store` writes. Kept tokens are
 * not written, so a concurrent change is not undone.
 */
@Injectable()
export class ProviderTokensService {
  private readonly logger = new Logger(ProviderTokensService.name);

  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
    private readonly allowlist: HostAllowlist,
    private readonly renewals: TokenRenewals,
    private readonly clock: Clock,
    private readonly standIns: StandIns,
  ) {}

  /**
   * Checks a `provider_tokens` map at `loc` in the request; takes up to 12 seconds.
   * @throws InvalidInputError for all broken rules of hosts and tokens
   * @throws DomainError invalid_git_token when a provider rejects its token
   */
  async prepare(
    userId: string,
    inputs: ProviderTokenInputs,
    loc: readonly string[],
  ): Promise<PreparedTokens> {
    const plan = planTokenChanges(inputs, {
      allowlist: this.allowlist,
      storedHosts: await this.tokens.hosts(userId),
      usable: this.registry.usable,
      renewable: this.renewals.providers,
      now: this.clock.now(),
      standInProblem: asksForInstallation(inputs) ? await this.standIns.problem(userId) : null,
      loc,
    });
    if (plan.problems.length > 0) {
      throw new InvalidInputError(plan.problems);
    }
    const checked = await this.checkAll(plan.changes.filter((change) => change.kind === 'set'));
    const rejected = checked.find(isRejected);
    if (rejected) {
      throw invalidGitToken(rejected.token.provider, { said: rejected.verdict.said ?? null });
    }
    return {
      changes: [
        ...plan.changes.filter((change) => change.kind !== 'set'),
        ...checked.map(({ token, verdict }) => ({ ...token, verified: verdict.status === 'valid' })),
      ],
      warnings: this.warningsOf(checked),
    };
  }

  /** Writes changes in the caller's transaction, which has locked the user. */
  async store(manager: EntityManager, userId: string, prepared: PreparedTokens): Promise<void> {
    for (const change of prepared.changes) {
      await this.apply(manager, userId, change);
    }
  }

  private async apply(manager: EntityManager, userId: string, change: PreparedChange): Promise<void> {
    switch (change.kind) {
      case 'remove':
        await this.tokens.remove(manager, userId, change.provider);
        return;
      case 'account':
        await this.tokens.setAccountId(manager, userId, change.provider, change.accountId);
        return;
      case 'set':
        await this.tokens.store(manager, userId, change);
    }
  }

  /** Side by side; the results come in the order of the tokens. */
  private async checkAll(tokens: readonly NewToken[]): Promise<CheckedToken[]> {
    const bounds = this.calls.within(CHECKS_TIMEOUT_MS);
    return Promise.all(tokens.map((token) => this.check(token, bounds)));
  }

  /** Shows a token to its own provider only, at the host that came with it. */
  private async check(token: NewToken, bounds: CallBounds): Promise<CheckedToken> {
    if (token.installation) {
      return { token, verdict: { status: 'valid' } };
    }
    let current = token.token;
    const adapter = await this.registry.providerFor(token.provider, token.host);
    const verdict = await adapter.checkToken({
      ...bounds,
      token: token.token,
      host: token.host,
      replaceToken: (successor) => {
        current = successor;
        return Promise.resolve();
      },
    });
    return { token: { ...token, token: current }, verdict };
  }

  private warningsOf(checked: readonly CheckedToken[]): ProviderTokenWarning[] {
    return checked.flatMap(({ token: { provider }, verdict }) => {
      if (verdict.status !== 'unverified') {
        return [];
      }
      this.logger.warn('failed to verify a git token', { provider, code: verdict.code });
      return [unverifiedTokenWarning(provider, verdict.code, verdict.said ?? null)];
    });
  }
}

function asksForInstallation(inputs: ProviderTokenInputs): boolean {
  return [...inputs.values()].some((input) => input?.installation === true);
}

function isRejected(
  checked: CheckedToken,
): checked is CheckedToken & { verdict: TokenCheck & { status: 'invalid' } } {
  return checked.verdict.status === 'invalid';
}

function unverifiedTokenWarning(
  provider: ProviderType,
  code: ProviderErrorCode,
  said: string | null,
): ProviderTokenWarning {
  const reason = `${UNVERIFIED_REASONS[code]}${said === null ? '' : `: ${said}`}`;
  const detail = `The ${provider} token was stored but not verified: ${/[.!?…]$/.test(reason) ? reason : `${reason}.`}`;
  return { provider, code, detail };
}
