import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

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

/** A secret for a part of what another one signs: it tells nothing of that one, nor of those of other parts. */
export function webhookSecretFor(part: string, secret: string): string {
  return `${PREFIX}${createHmac('sha256', secret).update(part).digest('base64')}`;
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
    return standardSignature(key, `${id}.${timestamp}.`, body);
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

/** A webhook as it came. */
export interface ReceivedWebhook {
  /** Returns a header by name; empty when it is missing. */
  header: (name: string) => string;
  /** The bytes as they came: a parser may read two bodies as one. */
  body: Buffer;
}

export interface SignedWebhook extends ReceivedWebhook {
  secret: string;
  now: number;
}

/** Older deliveries may have been recorded and sent again. */
const REPLAY_WINDOW_SECONDS = 300;
const ANY_SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+={0,2})$/;

export const SIGNATURE_SCHEMES = ['hmac_sha256_hex', 'standard_webhooks', 'slack_v0'] as const;
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number];

const CHECKS: Record<SignatureScheme, (sent: SignedWebhook, headerName: string) => boolean> = {
  hmac_sha256_hex: ({ header, body, secret }, headerName) => {
    const expected = createHmac('sha256', secret).update(body).digest('hex');
    const given = header(headerName).toLowerCase();
    return isSameText(given.replace(/^sha256=/, ''), expected);
  },
  standard_webhooks: ({ header, body, secret, now }) => {
    const timestamp = header('webhook-timestamp');
    const [, encoded] = ANY_SECRET.exec(secret) ?? [];
    const key = encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64');
    const expected = standardSignature(key, `${header('webhook-id')}.${timestamp}.`, body);
    const given = header('webhook-signature').split(' ').slice(0, 10);
    return given.some((each) => isSameText(each, expected)) && isRecent(timestamp, now);
  },
  slack_v0: ({ header, body, secret, now }, headerName) => {
    const timestamp = header('x-slack-request-timestamp');
    const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');
    return isSameText(header(headerName), `v0=${expected}`) && isRecent(timestamp, now);
  },
};

/** @param headerName where the scheme does not name it */
export function isSigned(scheme: SignatureScheme, sent: SignedWebhook, headerName = ''): boolean {
  return CHECKS[scheme](sent, headerName);
}

/** Compares in constant time: both digests have the same length. */
export function isSameText(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function standardSignature(key: Buffer, begin: string, body: string | Buffer): string {
  return `v1,${createHmac('sha256', key).update(begin).update(body).digest('base64')}`;
}

function isRecent(seconds: string, now: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(now / 1000 - Number(seconds)) <= REPLAY_WINDOW_SECONDS;
}
