import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;
/** Bounds of the specification, in bytes. */
const MIN_BYTES = 24;
const MAX_BYTES = 64;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export const WEBHOOK_SECRET_FORM = { pattern: `^${PREFIX}[A-Za-z0-9+/]{32,86}={0,2}$` };

/** A new signing secret: `whsec_` and 32 random bytes in base64. */
export function createWebhookSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** The bytes of a secret; null unless it is `whsec_` and 24 to 64 bytes in base64. */
export function webhookSecretBytes(secret: string): Buffer | null {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : '';
  const bytes = BASE64.test(encoded) ? Buffer.from(encoded, 'base64') : Buffer.alloc(0);
  return bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : null;
}

export interface SignedDelivery {
  id: string;
  at: Date;
  body: string;
}

/**
 * The headers of https://www.standardwebhooks.com: HMAC-SHA256 over id, timestamp in seconds, and body,
 * with each of the secrets.
 * @throws Error for a malformed secret
 */
export function signatureHeaders(
  secrets: readonly string[],
  { id, at, body }: SignedDelivery,
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signatures = secrets.map((secret) => {
    const key = webhookSecretBytes(secret);
    if (key === null) {
      throw new Error('a signing secret has the wrong form');
    }
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
