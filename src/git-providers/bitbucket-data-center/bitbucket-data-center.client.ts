import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { exchangeJson, type JsonAnswer, type RetryTiming } from '../provider-http.js';
import { gitHostBaseUrl } from '../git-host.js';
import { GitProviderError, type ProviderAuth, type ProviderCall } from '../git-provider.js';
import { sendChange } from '../change-requests.js';
import { dataCenterReasons } from './bitbucket-data-center.mapper.js';

/**
 * Bitbucket Data Center's REST API (https://developer.atlassian.com/server/bitbucket/rest/) for one refresh of one
 * user. Paths say `latest` where the resource has not changed since Bitbucket Server 5: the alias has always been
 * served. A server without a resource answers 404, which callers get as a null body.
 */
export class BitbucketDataCenterClient {
  /** Address of the server with its context path. */
  readonly serverUrl: string;
  private readonly restUrl: string;
  private readonly headers: Record<string, string>;

  /** @throws GitProviderError when the credentials name no server: this software has no default address */
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

  /**
   * @param path Below `/rest`, encoded, with its query
   * @throws GitProviderError
   */
  async get(path: string): Promise<JsonAnswer> {
    return await exchangeJson(
      this.http,
      { url: `${this.restUrl}${path}`, headers: this.headers },
      this.call,
      this.timing,
    );
  }

  /**
   * A question that needs a body; changes nothing on the server.
   *
   * @throws GitProviderError
   */
  async ask(path: string, body: unknown): Promise<JsonAnswer> {
    return await exchangeJson(
      this.http,
      { url: `${this.restUrl}${path}`, headers: this.postHeaders, body },
      this.call,
      this.timing,
    );
  }

  /**
   * Sends a change once.
   *
   * @param path Below `/rest`, encoded
   * @throws GitProviderError with a `reason` when the server refuses
   */
  async change(path: string, body: unknown): Promise<unknown> {
    const { token } = this.auth;
    const url = `${this.restUrl}${path}`;
    return await sendChange(
      this.http,
      { url, headers: this.postHeaders, body, token, reasons: dataCenterReasons },
      this.call,
      this.timing,
    );
  }

  /** Without the second the server takes the request for a forged one of a browser. */
  private get postHeaders(): Record<string, string> {
    return { ...this.headers, 'x-atlassian-token': 'no-check' };
  }
}
