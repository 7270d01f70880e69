import type { IncomingMessage } from 'node:http';
import { JsonBoundsError, JsonOutline } from '@slipway/common/json-outline.js';
import { receiveByDeadline } from '@slipway/common/requests/json-body.js';
import { DomainError, InvalidInputError } from '../../common/errors/domain-error.js';
import type { SentEvent } from './event-source.js';

const MAX_BYTES = 1_048_576;
const DEADLINE_MS = 20_000;
/** Pushes name every file of every commit. */
const BOUNDS = { depth: 64, values: 50_000 };

/** The bytes that were signed. @throws DomainError too_large beyond a mebibyte, before any of it is parsed */
export async function readEventBody(request: IncomingMessage): Promise<Buffer> {
  return receiveByDeadline(request, DEADLINE_MS, async () => {
    const chunks: Buffer[] = [];
    const declared = Number(request.headers['content-length'] ?? 0);
    let size = 0;
    const received: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
    for await (const chunk of received) {
      size += chunk.length;
      if (Math.max(size, declared) > MAX_BYTES) {
        throw new DomainError('too_large', 'payload_too_large', 'An event may have 1 MiB.');
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  });
}

/** JSON, or a form with JSON in `payload`, which GitHub sends by default. @throws InvalidInputError for others */
export function parseEvent({ header, body }: SentEvent): unknown {
  const isForm = header('content-type').startsWith('application/x-www-form-urlencoded');
  const text = body.toString('utf8');
  const json = isForm ? (new URLSearchParams(text).get('payload') ?? '') : text;
  try {
    new JsonOutline(BOUNDS).push(Buffer.from(json));
    const payload: unknown = JSON.parse(json);
    if (payload !== null) {
      return payload;
    }
  } catch (error) {
    if (!(error instanceof JsonBoundsError || error instanceof SyntaxError)) {
      throw error;
    }
  }
  const msg = `Expected JSON of at most ${BOUNDS.values} values.`;
  throw new InvalidInputError([{ loc: ['body'], msg, type: 'json_invalid' }]);
}
