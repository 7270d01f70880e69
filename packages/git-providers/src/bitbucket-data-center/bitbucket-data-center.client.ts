import { gitHostBaseUrl } from '../public-git-servers.js';
import { GitProviderError } from '../git-provider.js';
import { RestClient, type RestContext } from '../rest-client.js';
import type { z } from 'zod';
import { dataCenterReasons } from './bitbucket-data-center.mapper.js';
import { refusalSchema } from './bitbucket-data-center.schema.js';

/** Names the caller in a response header, also on servers without a resource for it. */
const WHO_AM_I = '/api/1.0/application-properties';

/**
 * The REST API (https://developer.atlassian.com/server/bitbucket/rest/). Paths use the alias `latest`, which every
 * version since 5 serves.
 */
export class BitbucketDataCenterClient extends RestClient {
  readonly serverUrl: string;
  readonly root: string;
  protected readonly headers: Record<string, string>;
  /** The server suspects cross-site request forgery when this header is missing. */
  protected override readonly headersOfPost = { 'x-atlassian-token': 'no-check' };

  /** @throws GitProviderError without a host: this software has no default address */
  constructor(context: RestContext) {
    super(context);
    const { host, token } = context.call;
    if (host === null) {
      throw new GitProviderError('unsupported', { cause: new Error('a Data Center token needs a host') });
    }
    this.serverUrl = gitHostBaseUrl(host);
    this.root = `${this.serverUrl}/rest`;
    this.headers = { authorization: `Bearer ${token}` };
  }

  /** A read that needs a body; null for 404. @throws GitProviderError */
  async ask<T>(path: string, question: unknown, schema: z.ZodType<T>): Promise<T | null> {
    const { body } = await this.exchange(`${this.root}${path}`, question);
    return body === null ? null : schema.parse(body);
  }

  /** The token's user. The resource is public, and names none for an anonymous request. @throws GitProviderError */
  async userName(): Promise<string> {
    const { headers } = await this.exchange(`${this.root}${WHO_AM_I}`);
    const encoded = headers.get('x-ausername') ?? '';
    if (encoded === '') {
      throw new GitProviderError('unsupported', { cause: new Error('the server named no user') });
    }
    return decoded(encoded);
  }

  protected reasonsOf(refusal: unknown): string[] {
    return dataCenterReasons(refusalSchema.parse(refusal));
  }
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
