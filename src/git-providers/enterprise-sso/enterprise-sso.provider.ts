import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import {
  GitProviderError,
  GitProvider,
  type GitServerKind,
  type GitCredential,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderAuth,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
} from '../git-provider.js';
import { providerErrorFromUpstream, type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import type { BrokerTokenCache } from './enterprise-sso.token-cache.js';
import { EnterpriseSsoClient } from './enterprise-sso.client.js';
import { type GitServerToken, isRefreshToken } from './enterprise-sso.mapper.js';

export interface EnterpriseSsoOptions {
  /** Realm address, `https://sso.example.com/realms/main`. */
  issuer: string;
  /** Alias of the identity provider that is the git host. */
  alias: string;
  /** Where the git host is, as in a token's `host`. */
  host: string | null;
  clientId?: string;
  clientSecret?: string;
  apiVersion: 'v1' | 'v2';
  /** Clock, chance and pauses of the one retry; the machine's by default. */
  timing?: RetryTiming;
}

/**
 * A git host whose tokens Keycloak keeps. The user's stored value is a Keycloak access, refresh or offline token; with it
 * the host's token is fetched, and the host's ordinary adapter does the rest.
 */
export class EnterpriseSsoProvider extends GitProvider {
  private readonly broker: EnterpriseSsoClient;
  private readonly scope: string;
  private readonly timing: RetryTiming;

  constructor(
    http: GuardedHttpClient,
    private readonly inner: GitProvider,
    private readonly options: EnterpriseSsoOptions,
    private readonly cache: BrokerTokenCache,
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
    this.broker = new EnterpriseSsoClient(http, { ...options, timing: this.timing });
    this.scope = `${options.issuer} ${options.alias}`;
  }

  override get kind(): GitServerKind {
    return this.inner.kind;
  }

  /** The operator's git host, whatever the credentials say. */
  serverOf(): string {
    return this.inner.serverOf(this.options.host);
  }

  /** @inheritdoc */
  async findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork> {
    return needingSignIn(() =>
      this.withGitServerToken(auth, call, (forge, forgeCall) => this.inner.findWork(forge, forgeCall)),
    );
  }

  /** `invalid` only when Keycloak itself rejects the stored value; a host that rejects its own token is `reauth_required`. */
  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      return await this.withGitServerToken(auth, call, async (forge, forgeCall) => {
        const check = await this.inner.checkToken(forge, forgeCall);
        if (check.status === 'invalid') {
          throw new GitProviderError('unauthorized');
        }
        return check;
      });
    } catch (error) {
      const { code } = providerErrorFromUpstream(error);
      return code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code };
    }
  }

  /** @inheritdoc */
  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    return needingSignIn(() =>
      this.withGitServerToken(auth, call, (forge, forgeCall) => this.inner.getUser(forge, forgeCall)),
    );
  }

  /** @inheritdoc */
  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    return needingSignIn(() =>
      this.withGitServerToken(auth, call, (forge, forgeCall) =>
        this.inner.openChangeRequest(forge, request, forgeCall),
      ),
    );
  }

  /** At the operator's git host, whatever the credentials say. */
  cloneUrl(_host: string | null, repository: string): string {
    return this.inner.cloneUrl(this.options.host, repository);
  }

  /** The git host's own token, as long as it lasts. */
  async gitCredential(auth: ProviderAuth, call: ProviderCall): Promise<GitCredential> {
    return needingSignIn(() =>
      this.withGitServerToken(auth, call, (forge, forgeCall) => this.inner.gitCredential(forge, forgeCall)),
    );
  }

  /** The git host's own token, as long as it lasts. */
  override async apiToken(auth: ProviderAuth, call: ProviderCall): Promise<string> {
    return needingSignIn(() => this.withGitServerToken(auth, call, ({ token }) => Promise.resolve(token)));
  }

  /**
   * Runs a call to the git host. Should the host refuse the token, Keycloak is asked for it once more.
   *
   * @throws GitProviderError `unauthorized` from Keycloak, `reauth_required` when the host refuses
   */
  private async withGitServerToken<T>(
    auth: ProviderAuth,
    call: ProviderCall,
    use: (forge: ProviderAuth, forgeCall: ProviderCall) => Promise<T>,
  ): Promise<T> {
    const forgeCall: ProviderCall = { signal: call.signal, deadlineAt: call.deadlineAt };
    const { host } = this.options;
    const first = await this.gitServerToken(auth, call);
    try {
      return await use({ token: first.token, host }, forgeCall);
    } catch (error) {
      if (!isUnauthorized(error)) {
        throw error;
      }
      this.cache.drop(this.scope, auth.token, first);
      const second = await this.gitServerToken(auth, call);
      if (second.token === first.token) {
        throw new GitProviderError('reauth_required', { cause: error });
      }
      return await needingSignIn(() => use({ token: second.token, host }, forgeCall));
    }
  }

  private async gitServerToken(auth: ProviderAuth, call: ProviderCall): Promise<GitServerToken> {
    if (this.timing.now() >= call.deadlineAt) {
      throw new GitProviderError('timeout');
    }
    const found = await whileWanted(call.signal, () =>
      this.cache.get(this.scope, auth.token, () => this.lookUp(auth.token, call)),
    );
    // The call that caused a rotation may have had no way to store the new token, or have failed to.
    await this.handOverSuccessor(auth.token, call);
    return found;
  }

  private async lookUp(stored: string, call: ProviderCall): Promise<GitServerToken> {
    if (!isRefreshToken(stored)) {
      return this.broker.readGitServerToken(stored);
    }
    const refreshToken = this.cache.successorOf(this.scope, stored)?.token ?? stored;
    const tokens = await this.broker.exchangeRefreshToken(refreshToken);
    if (tokens.refreshToken !== null && tokens.refreshToken !== refreshToken) {
      this.cache.noteRotation(this.scope, stored, refreshToken, tokens.refreshToken);
      // Before anything else can fail: the old token may be worthless now.
      await this.handOverSuccessor(stored, call);
    }
    return this.broker.readGitServerToken(tokens.accessToken);
  }

  private async handOverSuccessor(stored: string, call: ProviderCall): Promise<void> {
    const successor = this.cache.successorOf(this.scope, stored);
    if (!successor || successor.handedOver || !call.replaceToken) {
      return;
    }
    try {
      await call.replaceToken(successor.token);
    } catch (error) {
      throw new GitProviderError('unavailable', { cause: error });
    }
    successor.handedOver = true;
  }
}

/** A rejection, here, is something that only a new sign-in mends. */
async function needingSignIn<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isUnauthorized(error) ? new GitProviderError('reauth_required', { cause: error }) : error;
  }
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof GitProviderError && error.code === 'unauthorized';
}

/** Waits for shared work no longer than this caller wants it; the work itself goes on. */
async function whileWanted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(new GitProviderError('timeout', { cause: signal.reason }));
  };
  if (signal.aborted) {
    throw new GitProviderError('timeout', { cause: signal.reason });
  }
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
