const MAX_LENGTH = 300;
const HIDDEN = '***';

/**
 * One line out of what a provider said, fit to show: without the token, control characters and anything beyond 300
 * characters; null when it said nothing.
 */
export function providerReason(texts: readonly string[], token: string): string | null {
  const parts = texts.map((text) => text.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim());
  const line = [...new Set(parts.filter((part) => part !== ''))].join('; ');
  const masked = secretFormsOf(token).reduce((text, form) => text.replaceAll(form, HIDDEN), line);
  if (masked === '') {
    return null;
  }
  const characters = Array.from(masked);
  return characters.length <= MAX_LENGTH ? masked : `${characters.slice(0, MAX_LENGTH - 1).join('')}…`;
}

/** The token, the secret of `email:secret`, and both as they travel; longest first. */
function secretFormsOf(token: string): string[] {
  const secret = token.slice(token.indexOf(':') + 1);
  return [token, secret]
    .filter((text) => text !== '')
    .flatMap((text) => [text, Buffer.from(text, 'utf8').toString('base64'), encodeURIComponent(text)])
    .toSorted((a, b) => b.length - a.length);
}
