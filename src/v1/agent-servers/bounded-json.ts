import type { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { parseJson } from '../../common/json-access.js';
import { JsonBoundsError, JsonOutline } from '../../common/requests/json-outline.js';

/** What a response may be at most. Parsing what is within blocks the event loop for some 50 ms, and no longer. */
export interface ResponseBounds {
  bytes: number;
  /** Values and keys together. */
  values: number;
}

const MIB = 1024 * 1024;
/** Deeper than the schemas of tools, which events of a conversation's state hold, and much less deep than a stack. */
const MAX_DEPTH = 128;
/** Up to this size a response waits for no other one. */
const SMALL_BYTES = MIB;
/** Larger responses that are received at the same time, from all agent servers together: their bytes are in memory. */
const MAX_LARGE = 16;
/** A larger response that takes longer is given up, since others wait for its place. */
const LARGE_MS = 5_000;

/** A response exceeds its bounds, whatever else is in it. The message has nothing of the response. */
export class ResponseBoundsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ResponseBoundsError';
  }
}

/** Parses a text that has arrived as a whole; undefined when it is no JSON or exceeds its bounds. */
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

/** Receives JSON from sandboxes: nobody can make it hold much, take long or keep others waiting. */
export class BoundedJson {
  readonly #large = pLimit(MAX_LARGE);

  /**
   * Receives and parses a text. Size, depth and number of values are judged while it arrives, and it is read no further
   * than that.
   *
   * @throws ResponseBoundsError, SyntaxError; the stream's error, when it ends early or takes too long
   */
  async receive(body: Readable, bounds: ResponseBounds): Promise<unknown> {
    const text = new IncomingText(body, bounds);
    try {
      if (await text.readUpTo(SMALL_BYTES)) {
        return text.parse();
      }
      return await this.#large(async () => {
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

/** A text that is on its way. What is not read yet stays with its sender. */
class IncomingText {
  readonly #source: AsyncIterator<Buffer>;
  readonly #outline: JsonOutline;
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(
    body: Readable,
    private readonly bounds: ResponseBounds,
  ) {
    this.#source = body[Symbol.asyncIterator]();
    this.#outline = new JsonOutline({ depth: MAX_DEPTH, values: bounds.values });
  }

  /** @returns whether that was all */
  async readUpTo(bytes: number): Promise<boolean> {
    while (this.#size < bytes) {
      const { done, value } = await this.#source.next();
      if (done === true) {
        return true;
      }
      this.#add(value);
    }
    return false;
  }

  parse(): unknown {
    return JSON.parse(Buffer.concat(this.#chunks).toString('utf8'));
  }

  #add(chunk: Buffer): void {
    const { bytes, values } = this.bounds;
    this.#size += chunk.length;
    if (this.#size > bytes) {
      throw new ResponseBoundsError(`more than ${bytes / MIB} MiB in one response`);
    }
    try {
      this.#outline.push(chunk);
    } catch (error) {
      if (error instanceof JsonBoundsError && error.problem === 'values') {
        throw new ResponseBoundsError(`more than ${values} values in one response`);
      }
      if (error instanceof JsonBoundsError && error.problem === 'depth') {
        throw new ResponseBoundsError(`a response with more than ${MAX_DEPTH} values inside each other`);
      }
      throw error;
    }
    this.#chunks.push(chunk);
  }
}
