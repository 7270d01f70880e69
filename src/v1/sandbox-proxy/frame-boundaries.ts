const LENGTH_OF_TWO_BYTES = 126;
const LENGTH_OF_EIGHT_BYTES = 127;
const MASKED = 0x80;
const MASK_BYTES = 4;
/** Of the first two bytes. */
const SHORT_HEADER_BYTES = 2;

/**
 * Finds where the frames of one direction of a WebSocket end (RFC 6455, 5.2), because a frame of our own may stand only
 * between two others. What is in them is not looked at, and what is no WebSocket merely has no boundary where we would
 * like one.
 */
export class FrameBoundaries {
  /** Bytes of the current frame's header so far. */
  #header: number[] = [];
  /** Bytes of the current frame's payload that are still to come. */
  #payload = 0;

  /** Whether the last byte so far ended a frame. */
  get isAtBoundary(): boolean {
    return this.#payload === 0 && this.#header.length === 0;
  }

  /** Follows bytes as they pass. */
  pass(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      at = this.#passPart(bytes, at);
    }
  }

  /**
   * Follows bytes up to the next end of a frame.
   *
   * @returns how many that are; null: the frame does not end in them
   */
  passToBoundary(bytes: Buffer): number | null {
    for (let at = 0; at < bytes.length;) {
      at = this.#passPart(bytes, at);
      if (this.isAtBoundary) {
        return at;
      }
    }
    return null;
  }

  /** @returns where the next part begins: a byte of a header, or what there is of a payload */
  #passPart(bytes: Buffer, at: number): number {
    if (this.#payload > 0) {
      const passed = Math.min(this.#payload, bytes.length - at);
      this.#payload -= passed;
      return at + passed;
    }
    this.#header.push(bytes.readUInt8(at));
    if (this.#header.length >= headerLength(this.#header)) {
      this.#payload = payloadLength(this.#header);
      this.#header = [];
    }
    return at + 1;
  }
}

function headerLength([, second = 0]: readonly number[]): number {
  return SHORT_HEADER_BYTES + lengthBytes(second) + ((second & MASKED) === 0 ? 0 : MASK_BYTES);
}

function payloadLength([, second = 0, ...rest]: readonly number[]): number {
  const bytes = lengthBytes(second);
  // Larger than a safe integer only where nobody will see its end.
  return bytes === 0
    ? second & ~MASKED
    : rest.slice(0, bytes).reduce((length, byte) => length * 256 + byte, 0);
}

function lengthBytes(second: number): 0 | 2 | 8 {
  switch (second & ~MASKED) {
    case LENGTH_OF_TWO_BYTES:
      return 2;
    case LENGTH_OF_EIGHT_BYTES:
      return 8;
    default:
      return 0;
  }
}
