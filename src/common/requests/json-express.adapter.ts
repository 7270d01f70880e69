import { StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Response } from 'express';

const JSON_TYPE = 'application/json; charset=utf-8';
/** Statuses whose responses have no body, or none that Express sends. */
const BODILESS: readonly number[] = [204, 205, 304];

/**
 * Sends JSON as one text, which Node.js joins with the headers. Express asks a dozen questions first (a type, an entity tag,
 * whether the client has it already), and makes a buffer of the text that goes out beside the headers; together this is a
 * twentieth of a small response. Where one of those questions matters, Express answers it.
 */
export class JsonExpressAdapter extends ExpressAdapter {
  override reply(response: Response, body: unknown, statusCode = response.statusCode): unknown {
    if (!isPlainJson(body, response, statusCode)) {
      return super.reply(response, body, statusCode);
    }
    const text = JSON.stringify(body);
    response.statusCode = statusCode;
    response.setHeader('Content-Type', JSON_TYPE);
    response.setHeader('Content-Length', Buffer.byteLength(text));
    return response.end(text);
  }
}

function isPlainJson(body: unknown, response: Response, statusCode: number): boolean {
  const { headers } = response.req;
  return (
    typeof body === 'object' &&
    body !== null &&
    !(body instanceof StreamableFile) &&
    !(body instanceof Error) &&
    !BODILESS.includes(statusCode) &&
    !response.hasHeader('Content-Type') &&
    headers['if-none-match'] === undefined &&
    headers['if-modified-since'] === undefined
  );
}
