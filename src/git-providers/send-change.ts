import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import { readJson } from '../common/http/read-json.js';
import { changeRefusal } from './change-refusal.js';
import type { ProviderCall } from './git-provider.types.js';
import { providerReason } from './provider-reason.js';
import { providerErrorFromUpstream } from './provider-response.js';
import type { RetryTiming } from './retry-once.js';
import { timeLeft } from './time-left.js';

export interface ChangeToSend {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST. */
  body: unknown;
  /** Not to appear in a reason. */
  token: string;
  /** The texts of an error answer that tell why. */
  reasons: (body: unknown) => string[];
}

/**
 * Sends a request that changes something, exactly once, and answers with its unparsed JSON.
 *
 * @throws GitProviderError as {@link changeRefusal} says, and when no answer came in time
 */
export async function sendChange(
  http: GuardedHttpClient,
  { url, headers, body, token, reasons }: ChangeToSend,
  call: ProviderCall,
  timing: RetryTiming,
): Promise<unknown> {
  try {
    const response = await http.fetch(url, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: call.signal,
      timeoutMs: timeLeft(call, timing.now()),
    });
    if (response.ok) {
      return await readJson(response, new URL(url).origin);
    }
    const text = await response.text();
    const reason = providerReason(reasons(parsedOrNull(text)), token);
    throw changeRefusal(response, reason, timing.now(), text);
  } catch (error) {
    throw providerErrorFromUpstream(error);
  }
}

/** Error pages of proxies are no JSON, and say nothing that would help. */
export function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) {
      return null;
    }
    throw error;
  }
}
