import { InvalidInputError } from '../../common/errors/invalid-input.error.js';

const KEY = /^[\x21-\x7e]{1,255}$/;

/**
 * The value of an `Idempotency-Key` header; null when there is none.
 *
 * @throws InvalidInputError when it is not 1 to 255 printable characters
 */
export function idempotencyKey(header: string | undefined): string | null {
  if (header === undefined) {
    return null;
  }
  if (!KEY.test(header)) {
    throw new InvalidInputError([
      {
        loc: ['header', 'Idempotency-Key'],
        msg: 'Expected 1 to 255 printable characters without spaces.',
        type: 'value_error',
      },
    ]);
  }
  return header;
}
