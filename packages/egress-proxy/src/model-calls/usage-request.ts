import type { ClientRequest, IncomingMessage } from 'node:http';
import { Transform, type TransformCallback } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { isJsonObject, parseJson } from '@slipway/common/json-access.js';
import type { HeaderLines } from '../injection.js';
import { isChatCall } from './model-usage.js';
import { Shares } from '../shares.js';

/** A longer body goes on as it comes: this much is held, and read at once. */
const MAX_BODY = 1024 * 1024;
/** There is no bound for all together, which some sandboxes could take from the others. */
const HELD_OF_SANDBOX = 8;
/** One that is slower goes on as it comes, too. */
const WHOLE_MS = 10_000;
const NOTHING = Buffer.alloc(0);
/** A host may learn the member. */
const REMEMBERED_MS = 3_600_000;
const MAX_REMEMBERED = 1_000;
/** A longer event has more to tell than counts. */
const MAX_EVENT = 16 * 1024;

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
/** Headers by which a body that was changed would be another one, or is none to read. */
const BOUND = [
  'content-encoding',
  'content-md5',
  'digest',
  'content-digest',
  'signature',
  'x-amz-content-sha256',
];
const ASKED = ',"stream_options":{"include_usage":true}';
/** By which hosts refuse members that they do not know. */
const REFUSALS = new Set([400, 422]);
const CLOSE_OBJECT = 0x7d;
const NEWLINE = 0x0a;

/** A body that was read whole before it goes on. */
export class HeldBody {
  private isSentPlain = false;

  constructor(
    public given: Buffer,
    /** Where the question goes into it; null: nowhere. */
    private end: number | null,
    private readonly over: { refused: () => void; released: () => void },
  ) {}

  /** It goes on with a request for usage. */
  get isAsking(): boolean {
    return this.end !== null;
  }

  headersFor(headers: HeaderLines): HeaderLines {
    const length = String(this.given.length + (this.isAsking ? ASKED.length : 0));
    return headers.map(([name, value]) => [name, name.toLowerCase() === 'content-length' ? length : value]);
  }

  sendTo(upstream: ClientRequest): void {
    if (this.end !== null) {
      upstream.write(this.given.subarray(0, this.end));
      upstream.write(ASKED);
      upstream.end(this.given.subarray(this.end));
      return;
    }
    upstream.end(this.given);
    if (!this.isSentPlain) {
      upstream.once('finish', () => this.drop());
    }
  }

  /** Whether the host may have refused the question, so that it has to get the body once more, as it was given. */
  isRefusedBy({ statusCode = 0 }: IncomingMessage): boolean {
    if (this.isAsking && REFUSALS.has(statusCode)) {
      this.end = null;
      this.isSentPlain = true;
      return true;
    }
    if (this.isSentPlain && statusCode < 300) {
      this.over.refused();
    }
    this.drop();
    return false;
  }

  /** Repeatable. */
  drop(): void {
    if (this.given !== NOTHING) {
      this.given = NOTHING;
      this.over.released();
    }
  }
}

/** Has streams of chat completions tell their usage where the program does not ask for it: they tell none otherwise. */
export class UsageRequests {
  private readonly held = new Shares(HELD_OF_SANDBOX);
  /** Hosts that refuse the member, each with the path, and to whom: a sandbox may have a host refuse what it takes later. */
  private readonly refusing = new LRUCache<string, true>({ max: MAX_REMEMBERED, ttl: REMEMBERED_MS });

  constructor(private readonly wholeMs = WHOLE_MS) {}

  /** How many bodies are held. */
  get size(): number {
    return this.held.total;
  }

  /**
   * Null where the body goes on as it comes.
   * @param place its host, as it is shown
   * @param gone rejects where nothing waits for it any more
   * @throws what `gone` rejects with
   */
  async hold(
    { sandbox, place, path }: { sandbox: string; place: string; path: string },
    request: IncomingMessage,
    gone: Promise<null>,
  ): Promise<HeldBody | null> {
    const key = `${sandbox} ${place}${path.replace(/\?.*/s, '')}`;
    const mayAsk = isChatCall(path) && isReadable(request) && !this.refusing.has(key);
    if (!mayAsk || !this.held.take(sandbox)) {
      return null;
    }
    let body: HeldBody | null = null;
    const released = (): void => this.held.release(sandbox);
    try {
      const given = await wholeBody(request, this.wholeMs, gone);
      const refused = (): void => void this.refusing.set(key, true);
      body = given && new HeldBody(given, placeOfQuestion(given), { refused, released });
      return body;
    } finally {
      if (body === null) {
        released();
      }
    }
  }
}

function isReadable({ headers }: IncomingMessage): boolean {
  return (
    JSON_TYPE.test(headers['content-type'] ?? '') &&
    BOUND.every((name) => headers[name] === undefined) &&
    Number(headers['content-length'] ?? 0) <= MAX_BODY
  );
}

/** Null where it is longer, or slow; it is then still to be read from its beginning. Rejects where it ends early, or nothing waits for it. */
async function wholeBody(request: IncomingMessage, ms: number, gone: Promise<null>): Promise<Buffer | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer | null>();
  const chunks: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY) {
      passOn();
    }
  };
  const passOn = (): void => {
    request.pause().off('data', take);
    request.unshift(Buffer.concat(chunks));
    resolve(null);
  };
  const leave = (): void => reject(new Error('the program in the sandbox has gone'));
  request
    .on('data', take)
    .once('end', () => resolve(Buffer.concat(chunks)))
    .once('error', leave)
    .once('close', leave);
  const timer = setTimeout(passOn, ms);
  try {
    return await Promise.race([promise, gone]);
  } finally {
    clearTimeout(timer);
  }
}

/** Null where it needs no question, or cannot be read. */
function placeOfQuestion(given: Buffer): number | null {
  if (given.includes('"stream_options"') || !/"stream"\s*:\s*true/.test(given.toString('latin1'))) {
    return null;
  }
  const body = parseJson(given.toString('utf8'));
  if (!isJsonObject(body) || body['stream'] !== true || Object.hasOwn(body, 'stream_options')) {
    return null;
  }
  return given.lastIndexOf(CLOSE_OBJECT);
}

/**
 * Takes out of a stream of events the one that only tells usage, which a program that did not ask may not expect. An event is
 * held until it is whole, as hosts send them.
 */
export class UsageEventFilter extends Transform {
  private held: Buffer[] = [];
  private length = 0;
  /** The line that is read is empty so far. */
  private isLineEmpty = true;
  /** The event is too long to be held, and goes on as it comes. */
  private isPassing = false;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) {
      const line = chunk.subarray(from, at);
      const isEnd = this.isLineEmpty && isBlank(line);
      this.keep(chunk.subarray(from, at + 1));
      this.isLineEmpty = true;
      from = at + 1;
      if (isEnd) {
        this.endEvent();
      }
    }
    const rest = chunk.subarray(from);
    this.isLineEmpty &&= isBlank(rest);
    this.keep(rest);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.endEvent();
    done();
  }

  private keep(part: Buffer): void {
    if (this.isPassing) {
      this.push(part);
      return;
    }
    this.held.push(Buffer.from(part));
    this.length += part.length;
    if (this.length > MAX_EVENT) {
      this.isPassing = true;
      this.passOn();
    }
  }

  private endEvent(): void {
    if (!this.isPassing && isUsageAlone(Buffer.concat(this.held).toString('utf8'))) {
      this.held = [];
    }
    this.passOn();
    this.isPassing = false;
  }

  private passOn(): void {
    if (this.held.length > 0) {
      this.push(Buffer.concat(this.held));
    }
    this.held = [];
    this.length = 0;
  }
}

function isBlank(line: Buffer): boolean {
  return line.length === 0 || (line.length === 1 && line[0] === 0x0d);
}

function isUsageAlone(event: string): boolean {
  const [, data = ''] = /^data:([^\r\n]*)\r?\n\s*$/.exec(event) ?? [];
  const told = data.includes('"choices"') ? parseJson(data) : null;
  return (
    isJsonObject(told) &&
    Array.isArray(told['choices']) &&
    told['choices'].length === 0 &&
    isJsonObject(told['usage'])
  );
}
