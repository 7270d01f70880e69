import { setTimeout as delay } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { parseJson } from '@slipway/common/json-access.js';
import { z } from 'zod';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import type { GitServerConfig } from '../../config/git-config.js';
import {
  PUBLIC_GIT_SERVER_NAMES,
  type PublicGitServerName,
} from '@slipway/git-providers/public-git-servers.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { GitHttpClient } from '../git-http.client.js';
import type { NewRenewal } from './plan-token-changes.js';
import {
  type ClaimedRenewal,
  ProviderTokenRepository,
  type StoredCredential,
} from './provider-token.repository.js';

/** So early that what begins with a token ends with it. */
const EARLY_MS = 5 * 60_000;
const TIMEOUT_MS = 8_000;
/** How long a caller waits for a renewal: egress proxies, which ask for tokens with all else, wait five seconds in all. */
const PATIENCE_MS = 3_000;
/** As long as a claim: meanwhile callers do not wait for a host that is in trouble. */
const TROUBLE_MS = 20_000;
const MAX_TROUBLED = 10_000;
const LOOK_MS = 100;
/** As long as nothing else may use the refresh token, which hosts end with their answer: the claim lasts a little longer. */
const STORING_MS = 10_000;
const STORE_AGAIN_MS = 500;

/**
 * Where each host renews tokens of users, below the address that repositories are cloned from:
 * https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens,
 * https://docs.gitlab.com/api/oauth2/, https://developer.atlassian.com/cloud/bitbucket/oauth-2
 */
const TOKEN_PATHS: Record<PublicGitServerName, string> = {
  github: '/login/oauth/access_token',
  gitlab: '/oauth/token',
  bitbucket: '/site/oauth2/access_token',
};

const renewedSchema = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  expires_in: z.number().positive().optional(),
  /** Some hosts keep the one that was sent. */
  refresh_token: z
    .string()
    .regex(/^[\x21-\x7e]{1,8192}$/)
    .optional(),
});
/** GitHub says so with status 200. */
const refusedSchema = z.object({ error: z.string() });

/** Only another sign-in of the user mends these; GitHub has a word of its own. */
const FINAL = new Set(['invalid_grant', 'bad_refresh_token']);

interface Renewed {
  token: string;
  renewal: NewRenewal;
}

/** Keeps tokens of OAuth that the user's client brought with a refresh token from ending. */
@Injectable()
export class TokenRenewals implements BeforeApplicationShutdown {
  private readonly logger = new Logger(TokenRenewals.name);
  private readonly underWay = new Set<Promise<boolean>>();
  private readonly troubled = new LRUCache<string, true>({ max: MAX_TROUBLED, ttl: TROUBLE_MS });

  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly http: GitHttpClient,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** A token that a host has made is stored, as it has ended the one before. */
  async beforeApplicationShutdown(): Promise<void> {
    await within(TIMEOUT_MS, Promise.all(this.underWay));
  }

  /** Providers whose tokens at the default address can be renewed. */
  get providers(): PublicGitServerName[] {
    return PUBLIC_GIT_SERVER_NAMES.filter((name) => this.config.git.servers[name].oauthClientId !== null);
  }

  /**
   * The user's credentials, as `ProviderTokenRepository.list`, those that are about to end renewed first. One that cannot be
   * renewed is given as it is: its host says why it refuses it.
   * @throws SecretDecryptionError
   */
  async current(userId: string): Promise<StoredCredential[]> {
    const listed = await this.tokens.list(userId);
    const horizon = this.horizon();
    const due = listed.filter(
      ({ expiresAt, hasEnded }) => !hasEnded && expiresAt !== null && expiresAt <= horizon,
    );
    if (due.length === 0) {
      return listed;
    }
    await Promise.all(due.map(async (credential) => await this.renew(userId, credential)));
    return await this.tokens.list(userId);
  }

  private horizon(): Date {
    return new Date(this.clock.now() + EARLY_MS);
  }

  private async renew(userId: string, { provider, token }: StoredCredential): Promise<void> {
    const name = this.providers.find((each) => each === provider);
    if (name === undefined) {
      return;
    }
    const key = `${userId}:${provider}`;
    const claimed = await this.tokens.claimRenewal(userId, provider, this.horizon());
    const work =
      claimed !== null
        ? this.begun(this.exchange(name, claimed, userId))
        : !this.troubled.has(key)
          ? this.whileClaimed(userId, provider, token)
          : Promise.resolve(true);
    // What was begun goes on: the host may have made the new token already.
    if ((await within(PATIENCE_MS, work)) !== true) {
      this.troubled.set(key, true);
    } else if (claimed !== null) {
      this.troubled.delete(key);
    }
  }

  private begun(work: Promise<boolean>): Promise<boolean> {
    this.underWay.add(work);
    return work.finally(() => this.underWay.delete(work));
  }

  /** Returns false where the host is in trouble. */
  private async exchange(
    name: PublicGitServerName,
    { token, refreshToken }: ClaimedRenewal,
    userId: string,
  ): Promise<boolean> {
    try {
      const renewed = await this.ask(name, refreshToken, userId);
      if (renewed === null) {
        await this.tokens.end(userId, name, token, new Date(this.clock.now()));
        this.logger.warn('failed to renew git token for good', { provider: name });
      } else {
        await this.store(userId, name, { token, renewed });
      }
      return true;
    } catch (error) {
      // The claim stays, so that a host in trouble is not asked by each request.
      this.logger.warn('failed to renew git token', { provider: name, error: errorMessage(error) });
      return false;
    }
  }

  /** Tries for a while: what is not stored is lost with its refresh token. @throws Error of the last try */
  private async store(
    userId: string,
    name: PublicGitServerName,
    { token, renewed }: { token: string; renewed: Renewed },
  ): Promise<void> {
    const deadline = performance.now() + STORING_MS;
    for (;;) {
      try {
        await this.tokens.storeRenewed(userId, name, token, renewed);
        return;
      } catch (error) {
        if (performance.now() >= deadline) {
          throw error;
        }
        this.logger.warn('failed to store renewed git token', { provider: name, error: errorMessage(error) });
        await delay(STORE_AGAIN_MS);
      }
    }
  }

  /** Hosts end the old token with the renewal, so all wait for the new one. Returns false where none came. */
  private async whileClaimed(userId: string, provider: ProviderType, token: string): Promise<boolean> {
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const stored = (await this.tokens.list(userId)).find((each) => each.provider === provider);
      if (stored?.token !== token || stored.expiresAt === null || stored.hasEnded) {
        return true;
      }
      await delay(LOOK_MS);
    }
    return false;
  }

  /** Null: the host has ended what the refresh token stands for. @throws Error for anything else */
  private async ask(
    name: PublicGitServerName,
    refreshToken: string,
    userId: string,
  ): Promise<Renewed | null> {
    const server = this.config.git.servers[name];
    const url = `${server.cloneUrl}${TOKEN_PATHS[name]}`;
    const response = await this.http.fetch(url, {
      method: 'POST',
      ...request(name, server, refreshToken),
      timeoutMs: TIMEOUT_MS,
      holder: userId,
    });
    const answer = parseJson(await response.text());
    const { data: refused } = refusedSchema.safeParse(answer);
    if (refused !== undefined && FINAL.has(refused.error)) {
      return null;
    }
    const { data: renewed } = renewedSchema.safeParse(answer);
    if (!response.ok || renewed === undefined) {
      throw new Error(`the host answered with status ${response.status} and no token`);
    }
    const { access_token: token, expires_in: seconds, refresh_token: next = refreshToken } = renewed;
    // Without an end the token lasts.
    const endsAt = seconds === undefined ? FAR : this.clock.now() + seconds * 1000;
    return { token, renewal: { refreshToken: next, expiresAt: new Date(endsAt) } };
  }
}

const FAR = Date.UTC(9999, 0);

function request(
  name: PublicGitServerName,
  { oauthClientId, oauthClientSecret }: GitServerConfig,
  refreshToken: string,
): { headers: Record<string, string>; body: string } {
  const client = { client_id: oauthClientId ?? '', client_secret: oauthClientSecret ?? '' };
  const grant = { grant_type: 'refresh_token', refresh_token: refreshToken };
  const isBasic = name === 'bitbucket';
  const basic = Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64');
  return {
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
      ...(isBasic && { authorization: `Basic ${basic}` }),
    },
    body: new URLSearchParams(isBasic ? grant : { ...grant, ...client }).toString(),
  };
}
