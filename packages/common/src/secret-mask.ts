/** The mask of the OpenHands API; a client that sends it back means "unchanged". */
export const MASK = '**********';

/** The text with the secret masked; null and blank secrets mask nothing. */
export function withoutSecret(text: string, secret: string | null | undefined): string {
  return secret ? text.replaceAll(secret, MASK) : text;
}

export type UnmaskableReason = 'short' | 'word' | 'path';

const MIN_LENGTH = 6;
/** Numbers and versions shorter than this are everywhere. */
const MIN_NUMBER_LENGTH = 8;
/** A dictionary word; joined words may be a passphrase. */
const WORD = '(?:[A-Z]?[a-z]{1,14}|[A-Z]{1,15})';
const SINGLE_WORD = new RegExp(`^${WORD}$`);
const NAME = `(?:${WORD}\\d{0,3}|\\d{1,6})`;
const SEGMENT = `\\.?${NAME}(?:[-_ .@+]${NAME})*`;
const PATH = new RegExp(
  `^(?:(?:~|\\.{1,2}|[A-Za-z]:|[a-z]{2,8}://${SEGMENT}(?::\\d{1,5})?)?(?:[/\\\\]${SEGMENT})+|${SEGMENT}(?:/${SEGMENT})+|[a-z]{2,8}://${SEGMENT}(?::\\d{1,5})?)[/\\\\]?$`,
);

/** Why a value is too common to be masked wherever it occurs; null if it is masked. */
export function unmaskableReason(secret: string): UnmaskableReason | null {
  const value = secret.trim();
  if (value.length < MIN_LENGTH || (value.length < MIN_NUMBER_LENGTH && /^[\d.,:-]+$/.test(value))) {
    return 'short';
  }
  if (SINGLE_WORD.test(value)) {
    return 'word';
  }
  return PATH.test(value) ? 'path' : null;
}

export function unmaskableWarning(name: string, reason: UnmaskableReason): string {
  const why = { short: 'is short', word: 'is a single word', path: 'looks like a path or an address' };
  return `The value of ${name} ${why[reason]}, so it is not hidden in what the agent shows: hiding it would garble other texts.`;
}
