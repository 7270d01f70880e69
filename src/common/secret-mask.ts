/** What is shown in place of a secret, as in the OpenHands API; sent back by a client, it means "unchanged". */
export const MASK = '**********';

/** A text without a secret that may stand in it; null and blank secrets stand in none. */
export function withoutSecret(text: string, secret: string | null | undefined): string {
  return secret ? text.replaceAll(secret, MASK) : text;
}
