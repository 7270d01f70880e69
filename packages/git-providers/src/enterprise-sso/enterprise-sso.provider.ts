import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import {
  type ActorRights,
  type ChangeRequests,
  type HostActor,
  GitProviderError,
  GitProvider,
  type GitServerKind,
  type GitCredential,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
  type WorkPolicy,
  type ApiGuide,
} from '../git-provider.js';
import type { Forks } from '../forks.js';
import { providerErrorFromUpstream, verdictOf } from '../provider-errors.js';
import type {
  BranchQuery,
  FoundBranch,
  FoundRepository,
  Listing,
  ListRange,
  RepositoryQuery,
} from '../repository-lists.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import {
  EnterpriseSsoClient,
  EnterpriseSsoTokenCache,
  type KeycloakOptions,
} from './enterprise-sso.client.js';
import { type GitServerToken, isRefreshToken } from './enterprise-sso.mapper.js';

/** Bounds the wait for another replica that exchanges the same token; it exceeds the time of an exchange. */
const CLAIM_TRIES = 90;
const CLAIM_PAUSE_MS = 100;

/**
 * A git server whose tokens Keycloak keeps: the stored Keycloak token is exchanged for the server's token, and the
 * server's ordinary adapter does the rest. The server is the operator's, whatever host the credentials name.
 */
export class EnterpriseSsoProvider extends GitProvider {
  private readonly broker: EnterpriseSsoClient;
  private readonly cache: EnterpriseSsoTokenCache;
  private readonly scope: string;
  private readonly timing: RetryTiming;

  constructor(
    http: GuardedHttpClient,
    private readonly inner: GitProvider,
    private readonly options: KeycloakOptions & { host: string | null; timing?: RetryTiming },
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
    this.broker = new EnterpriseSsoClient(http, { ...options, timing: this.timing });
    this.cache = new EnterpriseSsoTokenCache({ now: this.timing.now });
    this.scope = `${options.issuer} ${options.alias}`;
  }

  override get kind(): GitServerKind {
    return this.inner.kind;
  }

  override get workPolicy(): WorkPolicy {
    return this.inner.workPolicy;
  }

  serverOf(): string {
    return this.inner.serverOf(this.options.host);
  }

  apiGuide(_host: string | null, repository: string, number: number): ApiGuide {
    return this.inner.apiGuide(this.options.host, repository, number);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    return this.signedIn(call, (own) => this.inner.findWork(own));
  }

  /** `invalid` when Keycloak rejects the stored value; `reauth_required` when the server rejects its own token. */
  async checkToken(call: ProviderCall): Promise<TokenCheck> {
    try {
      return await this.withGitServerToken(call, async (own) => {
        const check = await this.inner.checkToken(own);
        if (check.status === 'invalid') {
          throw new GitProviderError('unauthorized', { said: check.said ?? null });
        }
        return check;
      });
    } catch (error) {
      return verdictOf(providerErrorFromUpstream(error));
    }
  }

  async getUser(call: ProviderCall): Promise<ProviderUser> {
    return this.signedIn(call, (own) => this.inner.getUser(own));
  }

  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>> {
    return this.signedIn(call, (own) => this.inner.searchRepositories(query, own));
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>> {
    return this.signedIn(call, (own) => this.inner.searchBranches(query, own));
  }

  async listInstallations(range: ListRange, call: ProviderCall): Promise<Listing<string>> {
    return this.signedIn(call, (own) => this.inner.listInstallations(range, own));
  }

  async rightsOf(actor: HostActor, repository: string, call: ProviderCall): Promise<ActorRights> {
    return this.signedIn(call, (own) => this.inner.rightsOf(actor, repository, own));
  }

  async changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T> {
    return this.signedIn(call, (own) => this.inner.changeRequests(own, work));
  }

  async forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T> {
    return this.signedIn(call, (own) => this.inner.forks(own, work));
  }

  cloneUrl(_host: string | null, repository: string): string {
    return this.inner.cloneUrl(this.options.host, repository);
  }

  /** The git server's own token, as long as it lasts. */
  async gitCredential(call: ProviderCall): Promise<GitCredential> {
    return this.signedIn(call, (own) => this.inner.gitCredential(own));
  }

  override async apiToken(call: ProviderCall): Promise<string> {
    return this.signedIn(call, ({ token }) => Promise.resolve(token));
  }

  /** Asks the git server; only a new sign-in mends a rejection. */
  private async signedIn<T>(call: ProviderCall, use: (own: ProviderCall) => Promise<T>): Promise<T> {
    return needingSignIn(() => this.withGitServerToken(call, use));
  }

  /** Looks a refused token up once more. @throws GitProviderError `unauthorized`; `reauth_required` from the server */
  private async withGitServerToken<T>(
    call: ProviderCall,
    use: (own: ProviderCall) => Promise<T>,
  ): Promise<T> {
    const { signal, deadlineAt, userId } = call;
    const bounds = { signal, deadlineAt, ...(userId !== undefined && { userId }), host: this.options.host };
    const first = await this.gitServerToken(call);
    try {
      return await use({ ...bounds, token: first.token });
    } catch (error) {
      if (!isUnauthorized(error)) {
        throw error;
      }
      this.cache.drop(this.scope, call.token, first);
      const second = await this.gitServerToken(call);
      if (second.token === first.token) {
        throw new GitProviderError('reauth_required', { cause: error });
      }
      return await needingSignIn(() => use({ ...bounds, token: second.token }));
    }
  }

  private async gitServerToken(call: ProviderCall): Promise<GitServerToken> {
    if (this.timing.now() >= call.deadlineAt) {
      throw new GitProviderError('timeout');
    }
    const found = await whileWanted(call.signal, () =>
      this.cache.get(this.scope, call.token, () => this.lookUp(call.token, call)),
    );
    // The call that caused a rotation may have failed to store the new token.
    await this.storeSuccessor(call.token, call);
    return found;
  }

  private async lookUp(stored: string, call: ProviderCall): Promise<GitServerToken> {
    const accessToken = isRefreshToken(stored) ? await this.exchange(stored, call) : stored;
    return this.broker.readGitServerToken(accessToken, call.userId);
  }

  /** One call of all replicas at a time: where tokens rotate, Keycloak ends the user's session at a second use. */
  private async exchange(stored: string, call: ProviderCall): Promise<string> {
    const claimed = await this.claim(call);
    try {
      const known = claimed ?? stored;
      // It may not have been stored.
      const newest = this.cache.successorOf(this.scope, known)?.token ?? known;
      const { accessToken, refreshToken } = await this.broker.exchangeRefreshToken(newest, call.userId);
      if (refreshToken !== null && refreshToken !== newest) {
        this.cache.noteRotation(this.scope, stored, newest, refreshToken);
        // Before anything else can fail: the old token may be worthless now.
        await this.storeSuccessor(stored, call);
      }
      return accessToken;
    } finally {
      await call.releaseToken?.();
    }
  }

  /** The stored token; null for one that is not stored yet. */
  private async claim(call: ProviderCall): Promise<string | null> {
    // Others may wait for this lookup when its first caller has gone.
    const { signal } = new AbortController();
    for (let tries = 0; tries < CLAIM_TRIES; tries += 1) {
      const claimed = (await call.claimToken?.()) ?? null;
      if (claimed !== null || !call.claimToken) {
        return claimed;
      }
      await this.timing.delay(CLAIM_PAUSE_MS, signal);
    }
    throw new GitProviderError('timeout');
  }

  private async storeSuccessor(stored: string, call: ProviderCall): Promise<void> {
    const successor = this.cache.successorOf(this.scope, stored);
    if (!successor || successor.isStored || !call.replaceToken) {
      return;
    }
    try {
      await call.replaceToken(successor.token);
    } catch (error) {
      throw new GitProviderError('unavailable', { cause: error });
    }
    successor.isStored = true;
  }
}

/** Only a new sign-in mends a rejection here. */
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

/** Stops waiting when this caller's signal aborts; the shared work goes on. */
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
