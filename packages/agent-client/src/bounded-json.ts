import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { parseJson } from '@slipway/common/json-access.js';
import { JsonBoundsError, JsonOutline } from '@slipway/common/json-outline.js';

/** The limits of a response. Parsing a response within them blocks the event loop for about 50 ms at most. */
export interface ResponseBounds {
  bytes: number;
  values: number;
  /** Bytes that several responses may have together: each takes from them what it reads. */
  room?: { bytes: number };
}

const MIB = 1024 * 1024;
/** Deeper than the tool schemas in events of a conversation's state, and far from overflowing the stack. */
const MAX_DEPTH = 128;
/** A response up to this size is never queued behind others. */
const SMALL_BYTES = MIB;
/** Larger responses received at once, over all agent servers: their bytes are in memory. */
const MAX_LARGE = 16;
/** A larger response that takes longer is aborted, because others wait for its slot. */
const LARGE_MS = 5_000;

/** A response exceeds its bounds. The message quotes nothing of the response. */
export class ResponseBoundsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ResponseBoundsError';
  }
}

/** Parses a text that has arrived as a whole; undefined when it is not JSON or exceeds its bounds. */
export function parseWithin(text: Buffer, { bytes, values }: ResponseBounds): unknown {
  if (text.length > bytes) {
    return undefined;
  }
  try {
    new JsonOutline({ depth: MAX_DEPTH, values }).push(text);
  } catch (error) {
    if (error instanceof JsonBoundsError) {
      return undefined;
    }
    throw error;
  }
  return parseJson(text.toString('utf8'));
}

/** Receives JSON from sandboxes with bounded memory and time, so that no sandbox can hold up the others. */
export class BoundedJson {
  private readonly large = pLimit(MAX_LARGE);

  /**
   * Stops reading once size, depth or number of values exceeds its bound. Throws ResponseBoundsError, SyntaxError, or
   * the stream's error when it ends early or takes too long.
   */
  async receive(body: Readable, bounds: ResponseBounds): Promise<unknown> {
    const text = new IncomingText(body, bounds);
    try {
      if (await text.readUpTo(SMALL_BYTES)) {
        return text.parse();
      }
      return await this.large(async () => {
        const timer = setTimeout(() => body.destroy(new Error('it took too long')), LARGE_MS);
        try {
          await text.readUpTo(Infinity);
          return text.parse();
        } finally {
          clearTimeout(timer);
        }
      });
    } finally {
      body.destroy();
    }
  }
}

class IncomingText {
  private readonly source: AsyncIterator<Buffer>;
  private readonly outline: JsonOutline;
  private readonly chunks: Buffer[] = [];
  private size = 0;

  constructor(
    body: Readable,
    private readonly bounds: ResponseBounds,
  ) {
    this.source = body[Symbol.asyncIterator]();
    this.outline = new JsonOutline({ depth: MAX_DEPTH, values: bounds.values });
  }

  async readUpTo(bytes: number): Promise<boolean> {
    while (this.size < bytes) {
      const { done, value } = await this.source.next();
      if (done === true) {
        return true;
      }
      this.add(value);
    }
    return false;
  }

  parse(): unknown {
    return JSON.parse(Buffer.concat(this.chunks).toString('utf8'));
  }

  private add(chunk: Buffer): void {
    const { bytes, values, room = { bytes } } = this.bounds;
    this.size += chunk.length;
    room.bytes -= chunk.length;
    if (this.size > bytes || room.bytes < 0) {
      throw new ResponseBoundsError(`more than ${bytes / MIB} MiB in one response`);
    }
    try {
      this.outline.push(chunk);
    } catch (error) {
      if (error instanceof JsonBoundsError && error.problem === 'values') {
        throw new ResponseBoundsError(`more than ${values} values in one response`);
      }
      if (error instanceof JsonBoundsError && error.problem === 'depth') {
        throw new ResponseBoundsError(`a response with more than ${MAX_DEPTH} values inside each other`);
      }
      throw error;
    }
    this.chunks.push(chunk);
  }
}
