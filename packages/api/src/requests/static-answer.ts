import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, Response } from 'express';
import { ifNoneMatch } from './response-headers.js';

/** Higher ones take much longer, and save a few per cent. */
const BROTLI_QUALITY = 6;

const CACHE_CONTROL = { revalidated: 'no-cache', immutable: 'public, max-age=31536000, immutable' };

type Coding = 'br' | 'gzip' | 'identity';

interface Variant {
  body: Buffer;
  etag: string;
}

const CODERS: Record<Coding, (content: Buffer) => Promise<Buffer>> = {
  br: async (content) =>
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  gzip: async (content) => promisify(gzip)(content),
  identity: (content) => Promise.resolve(content),
};

/** One response for all clients, made and encoded by the first request for it. */
export class StaticAnswer {
  private content: Promise<Buffer> | null = null;
  private readonly variants = new Map<Coding, Promise<Variant>>();

  /**
   * `make` is called again only after a failure. `immutable` is for addresses that change with the content.
   */
  constructor(
    private readonly type: string,
    private readonly make: () => Promise<Buffer> | string,
    private readonly cached: keyof typeof CACHE_CONTROL = 'revalidated',
  ) {}

  async send(request: Request, response: Response): Promise<void> {
    const coding = this.codingFor(request);
    const { body, etag } = await this.variant(coding);
    response.vary('Accept-Encoding');
    response.setHeader('ETag', etag);
    response.setHeader('Cache-Control', CACHE_CONTROL[this.cached]);
    if (ifNoneMatch(request.headers['if-none-match'], etag)) {
      response.status(304).end();
      return;
    }
    response.setHeader('Content-Type', this.type);
    response.setHeader('Content-Length', body.length);
    if (coding !== 'identity') {
      response.setHeader('Content-Encoding', coding);
    }
    response.end(request.method === 'HEAD' ? undefined : body);
  }

  private codingFor(request: Request): Coding {
    if (/^(image\/(?!svg)|font\/)/.test(this.type)) {
      return 'identity';
    }
    return (
      (['br', 'gzip'] as const).find((coding) => request.acceptsEncodings(coding) !== false) ?? 'identity'
    );
  }

  private variant(coding: Coding): Promise<Variant> {
    const known = this.variants.get(coding);
    if (known) {
      return known;
    }
    const variant = this.encode(coding);
    this.variants.set(coding, variant);
    // Waiting requests get the failure, and the next one tries again.
    variant.catch(() => {
      this.variants.delete(coding);
      this.content = null;
    });
    return variant;
  }

  private async encode(coding: Coding): Promise<Variant> {
    this.content ??= this.makeContent();
    const body = await CODERS[coding](await this.content);
    return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
  }

  private async makeContent(): Promise<Buffer> {
    return Buffer.from(await this.make());
  }
}
