import pLimit from 'p-limit';
import type { z } from 'zod';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { sendChange } from '../change-requests.js';
import { GitProviderError, type ProviderAuth, type ProviderCall } from '../git-provider.js';
import { exchangeJson, type RetryTiming } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { bitbucketReasons } from './bitbucket.mapper.js';
import { pageSchema, refusalSchema } from './bitbucket.schema.js';

interface BitbucketClientOptions {
  /** Such as `https://api.bitbucket.org/2.0`. */
  apiUrl: string;
  timing: RetryTiming;
}

/** `optional` requests are given up first when the hourly limit comes near. */
type BitbucketNeed = 'needed' | 'optional';

export interface BitbucketList<T> {
  values: T[];
  /** False when not all pages were read. */
  complete: boolean;
}

interface BitbucketListOptions<T> {
  maxPages: number;
  need?: BitbucketNeed;
  /** Ends the reading early, once an element is all that matters. */
  until?: (value: T) => boolean;
}

/** Per refresh, so that a single user cannot fill the connection pool. */
const MAX_IN_FLIGHT = 24;

/**
 * For one refresh of one user (https://developer.atlassian.com/cloud/bitbucket/rest/): after a refusal for too many
 * requests, this client asks nothing more.
 */
export class BitbucketClient {
  private readonly limit = pLimit(MAX_IN_FLIGHT);
  private readonly apiUrl: string;
  private readonly headers: Record<string, string>;
  private readonly token: string;
  private refusal: GitProviderError | null = null;
  private nearLimit = false;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: BitbucketClientOptions,
    auth: ProviderAuth,
    private readonly call: ProviderCall,
  ) {
    this.apiUrl = options.apiUrl.replace(/\/+$/, '');
    this.token = auth.token;
    this.headers = { authorization: authorization(auth.token) };
  }

  /** One resource; null for 404. `path` follows the API address, encoded, with its query. @throws GitProviderError */
  async get<T>(path: string, schema: z.ZodType<T>, need: BitbucketNeed = 'needed'): Promise<T | null> {
    const body = await this.request(`${this.apiUrl}${path}`, need);
    return body === null ? null : schema.parse(body);
  }

  /**
   * A list; null for 404. Follows `next` only on the API's origin, to keep the token there.
   * @throws GitProviderError
   */
  async list<T>(
    path: string,
    elements: z.ZodType<T[]>,
    options: BitbucketListOptions<T>,
  ): Promise<BitbucketList<T> | null> {
    const values: T[] = [];
    let url: string | null = `${this.apiUrl}${path}`;
    for (let page = 1; url !== null; page += 1) {
      const body = await this.request(url, options.need ?? 'needed');
      if (body === null) {
        return page === 1 ? null : { values, complete: false };
      }
      const { values: listed, next } = pageSchema.parse(body);
      const read = requireFitting(elements, listed, 'a page has no list');
      values.push(...read);
      if (next === null || read.some((element) => options.until?.(element) ?? false)) {
        return { values, complete: next === null };
      }
      url = page < options.maxPages && this.isOwn(next) ? next : null;
    }
    return { values, complete: false };
  }

  /** Sends a change once. @throws GitProviderError with a `reason` when Bitbucket refuses */
  async change(path: string, body: unknown): Promise<unknown> {
    const { headers, token } = this;
    const url = `${this.apiUrl}${path}`;
    return await sendChange(
      this.http,
      { url, headers, body, token, reasons: (refusal) => bitbucketReasons(refusalSchema.parse(refusal)) },
      this.call,
      this.options.timing,
    );
  }

  get origin(): string {
    return new URL(this.apiUrl).origin;
  }

  private isOwn(address: string): boolean {
    return URL.canParse(address) && new URL(address).origin === this.origin;
  }

  private async request(url: string, need: BitbucketNeed): Promise<unknown> {
    return await this.limit(async () => {
      if (this.refusal) {
        throw this.refusal;
      }
      if (this.nearLimit && need === 'optional') {
        throw new GitProviderError('rate_limited');
      }
      try {
        const { http, call, headers, options, token } = this;
        const response = await exchangeJson(http, { url, headers, token }, call, options.timing);
        this.nearLimit ||= response.headers.get('x-ratelimit-nearlimit')?.toLowerCase() === 'true';
        return response.body;
      } catch (error) {
        if (error instanceof GitProviderError && error.code === 'rate_limited') {
          this.refusal = error;
        }
        throw error;
      }
    });
  }
}

/** An API token (`email:token`) is a password; every other kind is a bearer token. */
function authorization(token: string): string {
  return token.includes(':') ? `Basic ${Buffer.from(token, 'utf8').toString('base64')}` : `Bearer ${token}`;
}
