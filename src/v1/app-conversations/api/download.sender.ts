import { pipeline } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { Injectable, Logger } from '@nestjs/common';
import type { Response } from 'express';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { SharedLimit } from '@slipway/common/shared-limit.js';

const MAX_PER_USER = 8;
/** A client that reads nothing, or a source that sends nothing, for this long is cut off. */
const STALL_MS = 60_000;

export interface Download {
  headers: Readonly<Record<string, string>>;
  content: Readable;
}

/** Sends responses no faster than their clients read, so that each takes the memory of a few chunks. */
@Injectable()
export class DownloadSender {
  private readonly logger = new Logger(DownloadSender.name);
  private readonly underWay = new SharedLimit(Infinity, MAX_PER_USER);

  /**
   * Sends what `open` returns, whose errors become the response. A source that fails halfway breaks the response off,
   * so that it does not look complete.
   * @throws DomainError rate_limited when the user has too many downloads; `open` is not called then
   */
  async send(userId: string, response: Response, open: () => Promise<Download>): Promise<void> {
    const place = this.underWay.take(userId);
    if (typeof place === 'string') {
      throw new DomainError(
        'rate_limited',
        `You have ${MAX_PER_USER} downloads under way, the most allowed at a time; wait until one has ended.`,
        { retryAfterSeconds: 1 },
      );
    }
    try {
      await this.pipe(await open(), response);
    } finally {
      place();
    }
  }

  private async pipe({ content, headers }: Download, response: Response): Promise<void> {
    response.set(headers);
    if (response.req.method === 'HEAD') {
      content.destroy();
      response.end();
      return;
    }
    response.setTimeout(STALL_MS, () => response.destroy());
    try {
      // Ends both when either ends early.
      await pipeline(content, response);
    } catch (error) {
      this.logger.debug('failed to send a download to its end', { error: errorMessage(error) });
    }
  }
}
