import type { z } from 'zod';
import type { GuardedHttpClient, GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { readJson } from '@slipway/common/http/response-body.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { changeRefusal, logTail } from './change-requests.js';
import { GitProviderError, type ProviderCall } from './git-provider.js';
import {
  parsedOrNull,
  providerErrorFromResponse,
  providerErrorFromUpstream,
  providerReason,
} from './provider-errors.js';
import { requestBounds, retryOnce, type RetryTiming } from './provider-http.js';
import { requireFitting } from './response-schema.js';

export interface JsonResponse {
  headers: Headers;
  /** The parsed body; null for 404, which often only means "there is none". */
  body: unknown;
}

export interface ListPage<List> {
  data: List;
  hasMore: boolean;
}

/** What requests are sent with. */
export interface RestContext {
  http: GuardedHttpClient;
  timing: RetryTiming;
  call: ProviderCall;
}

/** The requests of one call to one git server. Paths follow the root, encoded, with their query. */
export abstract class RestClient {
  /** Has no trailing slash. */
  abstract readonly root: string;
  protected abstract readonly headers: Readonly<Record<string, string>>;
  protected readonly headersOfPost: Readonly<Record<string, string>> = {};

  constructor(protected readonly context: RestContext) {}

  /** The texts for people in a response that refuses a change. */
  protected abstract reasonsOf(refusal: unknown): string[];

  get origin(): string {
    return new URL(this.root).origin;
  }

  /** One resource; null for 404. @throws GitProviderError */
  async find<T>(path: string, schema: z.ZodType<T>): Promise<T | null> {
    const { body } = await this.exchange(`${this.root}${path}`);
    return body === null ? null : schema.parse(body);
  }

  /** A resource or list that has to be there, and to fit. @throws GitProviderError, `absent` for 404 */
  async require<T>(
    path: string,
    schema: z.ZodType<T>,
    absent: GitProviderError = addressNotFound(),
  ): Promise<{ data: T; headers: Headers }> {
    const { body, headers } = await this.exchange(`${this.root}${path}`);
    if (body === null) {
      throw absent;
    }
    return { data: requireFitting(schema, body, 'the response is another resource'), headers };
  }

  /** The last lines of a log; null where there is none for this token. @throws GitProviderError */
  async tail(path: string): Promise<string | null> {
    return await readTail(this.context, `${this.root}${path}`, this.headers);
  }

  /** Sends a change exactly once. @throws GitProviderError with a `reason` when the server refuses */
  async change(path: string, body: unknown): Promise<unknown> {
    const { http, timing, call } = this.context;
    try {
      const response = await http.fetch(`${this.root}${path}`, this.request(body));
      if (response.ok) {
        return await readJson(response, this.origin);
      }
      const text = await response.text();
      const reason = providerReason(this.reasonsOf(parsedOrNull(text)), call.token);
      throw changeRefusal(response, reason, timing.now(), { text, token: call.token });
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  /**
   * Sends one reading request; a server in trouble is asked once more.
   * @throws GitProviderError for every response but success and 404, and when none came in time
   */
  protected async exchange(url: string, body?: unknown): Promise<JsonResponse> {
    const { timing, call } = this.context;
    return await retryOnce(() => this.exchangeOnce(url, body), call, timing);
  }

  private async exchangeOnce(url: string, body: unknown): Promise<JsonResponse> {
    const { http, timing, call } = this.context;
    const response = await http.fetch(url, this.request(body));
    const { headers, status } = response;
    if (status === 404) {
      return { headers, body: null };
    }
    if (!response.ok) {
      const refusal = { text: status >= 400 ? await response.text() : '', token: call.token };
      // The server understood the request and refuses it, so a retry changes nothing.
      throw providerErrorFromResponse(response, timing.now(), refusal) ?? new GitProviderError('unsupported');
    }
    return { headers, body: await readJson(response, new URL(url).origin) };
  }

  private request(body: unknown): GuardedRequestInit {
    const { timing, call } = this.context;
    const headers = { accept: 'application/json', ...this.headers };
    return {
      ...(body === undefined
        ? { headers }
        : {
            method: 'POST',
            headers: { ...headers, 'content-type': 'application/json', ...this.headersOfPost },
            body: JSON.stringify(body),
          }),
      ...requestBounds(call, timing.now()),
    };
  }
}

/** Logs may be at another origin, which is told nothing of the token. @throws GitProviderError */
export async function readTail(
  { http, timing, call }: RestContext,
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<string | null> {
  try {
    const bounds = requestBounds(call, timing.now());
    const response = await http.fetch(url, { headers: { ...headers }, tailBytes: TAIL_BYTES, ...bounds });
    const text = await response.text();
    if (NO_LOG.includes(response.status)) {
      return null;
    }
    if (!response.ok) {
      const refusal = { text, token: call.token };
      throw providerErrorFromResponse(response, timing.now(), refusal) ?? new GitProviderError('unsupported');
    }
    return logTail(text);
  } catch (error) {
    if (error instanceof UpstreamError && error.reason === 'refused') {
      return null;
    }
    throw providerErrorFromUpstream(error);
  }
}

/** Logs that expired, and those of a storage that this token, or the service, may not read. */
const NO_LOG: readonly number[] = [400, 403, 404, 410, 416];
/** Includes the colours and times of the lines. */
const TAIL_BYTES = 16_384;

/** Returns the error for a 404 on an address that every server of this kind has. */
export function addressNotFound(): GitProviderError {
  return new GitProviderError('unsupported', { cause: new Error('the address is not found') });
}
