import pLimit from 'p-limit';
import type { z } from 'zod';
import { GitProviderError } from '../git-provider.js';
import { fieldsOf, requireFitting } from '../response-schema.js';
import { type JsonResponse, RestClient, type RestContext } from '../rest-client.js';
import { bitbucketReasons } from './bitbucket.mapper.js';
import { pageSchema, refusalSchema } from './bitbucket.schema.js';

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
 * Serves one refresh of one user (https://developer.atlassian.com/cloud/bitbucket/rest/): once Bitbucket has refused for too
 * many requests, this client asks nothing more.
 */
export class BitbucketClient extends RestClient {
  readonly root: string;
  protected readonly headers: Record<string, string>;
  private readonly limit = pLimit(MAX_IN_FLIGHT);
  private refusal: GitProviderError | null = null;
  private nearLimit = false;

  /** @param apiUrl such as `https://api.bitbucket.org/2.0` */
  constructor(context: RestContext, apiUrl: string) {
    super(context);
    this.root = apiUrl.replace(/\/+$/, '');
    this.headers = { authorization: authorization(context.call.token) };
  }

  /**
   * A list, of which it asks for what the schema reads; null for 404. Follows `next` only on the API's origin, to keep the
   * token there.
   * @param path with a query
   * @throws GitProviderError
   */
  async list<T>(
    path: string,
    elements: z.ZodType<T[]>,
    options: BitbucketListOptions<T>,
  ): Promise<BitbucketList<T> | null> {
    const values: T[] = [];
    let url = `${this.root}${path}&fields=next,${fieldsOf(elements, 'values')}`;
    for (let page = 1; page <= options.maxPages; page += 1) {
      const { body } = await this.limit(() => this.throttled(url, options.need ?? 'needed'));
      if (body === null) {
        return page === 1 ? null : { values, complete: false };
      }
      const { values: listed, next } = pageSchema.parse(body);
      const read = requireFitting(elements, listed, 'a page has no list');
      values.push(...read);
      if (next === null || read.some((element) => options.until?.(element) ?? false)) {
        return { values, complete: next === null };
      }
      if (!this.isOwn(next)) {
        break;
      }
      url = next;
    }
    return { values, complete: false };
  }

  protected reasonsOf(refusal: unknown): string[] {
    return bitbucketReasons(refusalSchema.parse(refusal));
  }

  protected override async exchange(url: string): Promise<JsonResponse> {
    return await this.limit(() => this.throttled(url, 'needed'));
  }

  private isOwn(address: string): boolean {
    return URL.canParse(address) && new URL(address).origin === this.origin;
  }

  private async throttled(url: string, need: BitbucketNeed): Promise<JsonResponse> {
    if (this.refusal) {
      throw this.refusal;
    }
    if (this.nearLimit && need === 'optional') {
      throw new GitProviderError('rate_limited');
    }
    try {
      const response = await super.exchange(url);
      this.nearLimit ||= response.headers.get('x-ratelimit-nearlimit')?.toLowerCase() === 'true';
      return response;
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'rate_limited') {
        this.refusal = error;
      }
      throw error;
    }
  }
}

/** An API token (`email:token`) is a password; every other kind is a bearer token. */
function authorization(token: string): string {
  return token.includes(':') ? `Basic ${Buffer.from(token, 'utf8').toString('base64')}` : `Bearer ${token}`;
}
