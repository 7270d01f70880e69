import { randomInt } from 'node:crypto';

const MIN_LENGTH = 16;
/** By which clients tell credentials apart before they send a byte; of two that fit, the longer one. */
const KNOWN_PREFIXES = [
  'github_pat_',
  'sk_live_',
  'sk_test_',
  'rk_live_',
  'rk_test_',
  'sk-ant-',
  'glpat-',
  'xoxb-',
  'xapp-',
  'ATATT',
  'ghp_',
  'gho_',
  'ghu_',
  'ghs_',
  'AIza',
  'sk-',
];
const OTHER_PREFIX = 'slipway-';
/** Six characters of a short value would be much of it, or all. */
const OWN_PREFIX = /^[!-~]{5}[-_](?=.{10})/;
const ALPHABETS = [
  'abcdef',
  'ghijklmnopqrstuvwxyz',
  'ABCDEF',
  'GHIJKLMNOPQRSTUVWXYZ',
  '0123456789',
  '-',
  '_',
];

/** A text that stands for a credential in a sandbox: of its form, so that clients that check it go on, and random. */
export function newPlaceholder(value: string): string {
  const prefix =
    KNOWN_PREFIXES.find((known) => value.startsWith(known)) ?? OWN_PREFIX.exec(value)?.[0] ?? OTHER_PREFIX;
  const rest = value.startsWith(prefix) ? value.slice(prefix.length) : value;
  const used = ALPHABETS.filter((alphabet) => Array.from(rest).some((letter) => alphabet.includes(letter)));
  const letters = used.join('') || '0123456789';
  const length = Math.max(value.length, MIN_LENGTH) - prefix.length;
  const random = Array.from({ length: Math.max(length, 1) }, () => letters[randomInt(letters.length)]);
  return `${prefix}${random.join('')}`;
}
