import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { verify } from '@octokit/webhooks-methods';

export interface SignedEvent {
  headers: IncomingHttpHeaders;
  /** The bytes as they came: a parser may read two bodies as one. */
  body: Buffer;
  secret: string;
  now: number;
}

export const SIGNATURES = {
  hmac_sha256_hex: isHmacSigned,
  standard_webhooks: isStandardWebhook,
  slack_v0: isSignedBySlack,
};
export type SignatureScheme = keyof typeof SIGNATURES;
export const SIGNATURE_SCHEMES = Object.keys(SIGNATURES) as SignatureScheme[];

/** Older deliveries may have been recorded and sent again. */
const REPLAY_WINDOW_SECONDS = 300;
const STANDARD_SECRET = /^(?:whsec_)?([A-Za-z0-9+/]+={0,2})$/;

export function header(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name.toLowerCase()];
  return typeof value === 'string' ? value : '';
}

export async function isSignedByGitHub({ headers, body, secret }: SignedEvent): Promise<boolean> {
  const signature = header(headers, 'x-hub-signature-256');
  // The library throws for what is empty.
  return body.length > 0 && signature !== '' && (await verify(secret, body.toString('utf8'), signature));
}

/** A signature where GitLab has a signing token, else its secret token as it is. */
export function isSignedByGitLab(event: SignedEvent): boolean {
  if (header(event.headers, 'webhook-signature') !== '') {
    return isStandardWebhook(event);
  }
  return equals(header(event.headers, 'x-gitlab-token'), event.secret);
}

/** `sha256=` and the digest in hexadecimal, or the digest alone. */
export function isHmacSigned({ headers, body, secret }: SignedEvent, headerName: string): boolean {
  const given = header(headers, headerName)
    .replace(/^sha256=/i, '')
    .toLowerCase();
  return equals(given, createHmac('sha256', secret).update(body).digest('hex'));
}

/** https://www.standardwebhooks.com, which GitLab's signing tokens follow. */
function isStandardWebhook({ headers, body, secret, now }: SignedEvent): boolean {
  const [id, timestamp] = [header(headers, 'webhook-id'), header(headers, 'webhook-timestamp')];
  const [, encoded] = STANDARD_SECRET.exec(secret) ?? [];
  const key = encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const given = header(headers, 'webhook-signature').split(' ').slice(0, 10);
  return given.some((each) => equals(each, `v1,${expected}`)) && isRecent(timestamp, now);
}

function isSignedBySlack({ headers, body, secret, now }: SignedEvent, headerName: string): boolean {
  const timestamp = header(headers, 'x-slack-request-timestamp');
  const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');
  return equals(header(headers, headerName), `v0=${expected}`) && isRecent(timestamp, now);
}

function isRecent(seconds: string, now: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(now / 1000 - Number(seconds)) <= REPLAY_WINDOW_SECONDS;
}

/** In the same time whatever is given; digests have one length. */
function equals(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
