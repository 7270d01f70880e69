import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestHandler } from 'express';

/** The keys that clients must present; with none the server is open. */
export class SessionKeys {
  readonly #digests: Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map((key) => hash('sha256', key, 'buffer'));
  }

  get isOpen(): boolean {
    return this.#digests.length === 0;
  }

  /** Takes equally long for every key. */
  accepts(key: string | undefined): boolean {
    if (this.isOpen) {
      return true;
    }
    const given = hash('sha256', key ?? '', 'buffer');
    return this.#digests.map((known) => timingSafeEqual(known, given)).includes(true);
  }

  readonly guard: RequestHandler = (request, response, next) => {
    if (this.accepts(request.get('x-session-api-key'))) {
      next();
    } else {
      response.status(401).json({ detail: 'Unauthorized' });
    }
  };
}
