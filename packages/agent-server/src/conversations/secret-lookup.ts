import type { ParsedSecret } from '@slipway/agent-protocol/conversation-schemas.js';
import { errorName, log } from '../log.js';

const LOOKUP_TIMEOUT_MS = 10_000;
/** More would not fit into an environment variable. */
const MAX_SECRET_BYTES = 128 * 1024;

/** Null when the lookup leads elsewhere. */
export type OwnSecret = (url: string, headers: Record<string, string>) => string | null;

/**
 * Fetches the secrets that are stored elsewhere. One that fails keeps its last value, or is left out without one:
 * the tools that need it will fail with a reason.
 */
export async function lookUpSecrets(
  secrets: Record<string, ParsedSecret>,
  last: Record<string, string>,
  ownSecret: OwnSecret,
): Promise<Record<string, string>> {
  const found = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => {
      if (secret.kind !== 'LookupSecret') {
        return [];
      }
      try {
        const headers = secret.headers ?? {};
        return [[name, ownSecret(secret.url, headers) ?? (await fetchSecret(secret.url, headers))] as const];
      } catch (error) {
        log('warn', 'failed to look up secret', { name, error: errorName(error) });
        // `last` has inherited members as well, such as `constructor`.
        const known = Object.hasOwn(last, name) ? last[name] : undefined;
        return known === undefined ? [] : [[name, known] as const];
      }
    }),
  );
  return Object.fromEntries(found.flat());
}

async function fetchSecret(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, {
    headers,
    // The headers hold a key for this address only.
    redirect: 'error',
    signal: AbortSignal.timeout(LOOKUP_TIMEOUT_MS),
  });
  if (!response.ok) {
    throw new Error('the secret was refused');
  }
  const text = await boundedText(response);
  return response.headers.get('content-type')?.includes('json') ? jsonString(text) : text;
}

async function boundedText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.byteLength;
    if (size > MAX_SECRET_BYTES) {
      throw new Error('the secret is too large');
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function jsonString(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'string') {
    throw new TypeError('the secret is not a string');
  }
  return value;
}
