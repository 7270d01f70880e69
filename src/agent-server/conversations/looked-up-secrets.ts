import { log } from '../log.js';
import type { ParsedSecret } from './start-schema.js';
import { describeFailure } from '../failure.js';

const TIMEOUT_MS = 10_000;

/**
 * Values of the secrets that are kept elsewhere. One that cannot be had keeps its last value, or is left out: the tools
 * that need it will say so.
 */
export async function lookUpSecrets(
  secrets: Record<string, ParsedSecret>,
  last: Record<string, string>,
): Promise<Record<string, string>> {
  const found = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => {
      if (secret.kind !== 'LookupSecret') {
        return [];
      }
      try {
        return [[name, await fetchSecret(secret.url, secret.headers ?? {})] as const];
      } catch (error) {
        log('warn', 'a secret could not be looked up', {
          name,
          reason: describeFailure(error).name,
        });
        return last[name] === undefined ? [] : [[name, last[name]] as const];
      }
    }),
  );
  return Object.fromEntries(found.flat());
}

async function fetchSecret(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) {
    throw new Error('the secret was refused');
  }
  const text = await response.text();
  return response.headers.get('content-type')?.includes('json') ? jsonString(text) : text;
}

function jsonString(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'string') {
    throw new TypeError('the secret is no text');
  }
  return value;
}
