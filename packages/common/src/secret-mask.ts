/** What is shown in place of a secret, as in the OpenHands API; sent back by a client, it means "unchanged". */
export const MASK = '**********';

/** A text without a secret that may stand in it; null and blank secrets stand in none. */
export function withoutSecret(text: string, secret: string | null | undefined): string {
  return secret ? text.replaceAll(secret, MASK) : text;
}

/** Why a value cannot be masked: it would black out texts that have nothing to do with it. */
export type UnmaskableReason = 'short' | 'word' | 'path';

const MIN_LENGTH = 6;
/** Numbers and versions of that length are everywhere. */
const MIN_NUMBER_LENGTH = 8;
/** One word as it stands in a dictionary. Words that are joined may be a passphrase. */
const WORD = '(?:[A-Z]?[a-z]{1,14}|[A-Z]{1,15})';
const SINGLE_WORD = new RegExp(`^${WORD}$`);
/** What a folder, a file or a host is called. */
const NAME = `(?:${WORD}\\d{0,3}|\\d{1,6})`;
const SEGMENT = `\\.?${NAME}(?:[-_ .@+]${NAME})*`;
/** A path, or an address, without anything that could be a key. */
const PATH = new RegExp(
  `^(?:(?:~|\\.{1,2}|[A-Za-z]:|[a-z]{2,8}://${SEGMENT}(?::\\d{1,5})?)?(?:[/\\\\]${SEGMENT})+|${SEGMENT}(?:/${SEGMENT})+|[a-z]{2,8}://${SEGMENT}(?::\\d{1,5})?)[/\\\\]?$`,
);

/**
 * Whether a value is too common to be masked wherever it occurs; null: it is masked. Passwords that are single words are
 * among them: they are warned about when they are stored.
 */
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

/** What users are told when they store such a value. */
export function unmaskableWarning(name: string, reason: UnmaskableReason): string {
  const why = { short: 'is short', word: 'is a single word', path: 'looks like a path or an address' };
  return `The value of ${name} ${why[reason]}, so it is not hidden in what the agent shows: hiding it would garble other texts.`;
}
