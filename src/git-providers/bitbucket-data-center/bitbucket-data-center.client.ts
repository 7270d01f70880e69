import type { z } from 'zod';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { sendChange } from '../change-requests.js';
import { GitProviderError, type ProviderAuth, type ProviderCall } from '../git-provider.js';
import { exchangeJson, gitHostBaseUrl, type JsonResponse, type RetryTiming } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { dataCenterReasons } from './bitbucket-data-center.mapper.js';
import { accountSchema, type DataCenterAccount, refusalSchema } from './bitbucket-data-center.schema.js';

/** Names the caller in a response header, also on servers without a resource for it. */
const WHO_AM_I = '/api/1.0/application-properties';

/**
 * The REST API (https://developer.atlassian.com/server/bitbucket/rest/) for one refresh of one user. Paths use the
 * alias `latest`, which every version since 5 serves. Callers get null for a 404.
 */
export class BitbucketDataCenterClient {
  readonly serverUrl: string;
  private readonly restUrl: string;
  private readonly headers: Record<string, string>;

  /** @throws GitProviderError without a host: this software has no default address */
  constructor(
    private readonly http: GuardedHttpClient,
    private readonly timing: RetryTiming,
    private readonly auth: ProviderAuth,
    private readonly call: ProviderCall,
  ) {
    if (auth.host === null) {
      throw new GitProviderError('unsupported', { cause: new Error('a Data Center token needs a host') });
    }
    this.serverUrl = gitHostBaseUrl(auth.host);
    this.restUrl = `${this.serverUrl}/rest`;
    this.headers = { authorization: `Bearer ${auth.token}` };
  }

  /** One resource; null for 404. `path` follows `/rest`, encoded, with its query. @throws GitProviderError */
  async get<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
    return parsed(await this.read(path), schema);
  }

  /** A page of a list; null for 404. @throws GitProviderError */
  async page<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
    const { body } = await this.read(path);
    return body === null ? null : requireFitting(schema, body, 'the response is no page of this list');
  }

  /** A read that needs a body. @throws GitProviderError */
  async ask<T>(path: string, question: unknown, schema: z.ZodType<T>): Promise<T | null> {
    const response = await exchangeJson(
      this.http,
      { url: `${this.restUrl}${path}`, headers: this.postHeaders, token: this.auth.token, body: question },
      this.call,
      this.timing,
    );
    return parsed(response, schema);
  }

  /** The token's user. The resource is public, and names none for an anonymous request. @throws GitProviderError */
  async userName(): Promise<string> {
    const { headers } = await this.read(WHO_AM_I);
    const encoded = headers.get('x-ausername') ?? '';
    if (encoded === '') {
      throw new GitProviderError('unsupported', { cause: new Error('the server named no user') });
    }
    return decoded(encoded);
  }

  /** The account of a slug from `toUserSlug`. @throws GitProviderError */
  async account(userSlug: string): Promise<DataCenterAccount> {
    const { body } = await this.read(`/api/latest/users/${userSlug}?avatarSize=64`);
    return requireFitting(accountSchema, body, 'the user resource returned no account');
  }

  /** Sends a change once. @throws GitProviderError with a `reason` when the server refuses */
  async change(path: string, body: unknown): Promise<unknown> {
    const { token } = this.auth;
    const url = `${this.restUrl}${path}`;
    return await sendChange(
      this.http,
      {
        url,
        headers: this.postHeaders,
        body,
        token,
        reasons: (refusal) => dataCenterReasons(refusalSchema.parse(refusal)),
      },
      this.call,
      this.timing,
    );
  }

  private async read(path: string): Promise<JsonResponse> {
    return await exchangeJson(
      this.http,
      { url: `${this.restUrl}${path}`, headers: this.headers, token: this.auth.token },
      this.call,
      this.timing,
    );
  }

  /** Without the second header the server suspects cross-site request forgery. */
  private get postHeaders(): Record<string, string> {
    return { ...this.headers, 'x-atlassian-token': 'no-check' };
  }
}

function parsed<T>({ body }: JsonResponse, schema: z.ZodType<T>): T | null {
  return body === null ? null : schema.parse(body);
}

/** User names travel percent-encoded; an invalid encoding is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) {
      return text;
    }
    throw error;
  }
}
