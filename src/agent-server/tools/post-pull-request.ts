import { z } from 'zod';
import { jsonText } from '../../common/json-access.js';
import { clipText } from './clip-text.js';
import type { OpenPullRequest } from './pull-request.js';

const TIMEOUT_MS = 60_000;
const MAX_REASON = 500;

const answerSchema = z.object({ number: z.number().int(), url: z.string() });

export interface PullRequestCallback {
  /** Where the request is posted. */
  url: string;
  /** Sent as `X-Session-API-Key`. */
  sessionKey: string;
  conversationId: string;
}

/** Has the service open the pull request: it holds the user's token, we do not. */
export function postPullRequest({ url, sessionKey, conversationId }: PullRequestCallback): OpenPullRequest {
  return async (request, signal) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-session-api-key': sessionKey },
      body: JSON.stringify({ conversation_id: conversationId, ...request }),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const body = parseJson(await response.text());
    const answer = answerSchema.safeParse(body);
    if (!response.ok || !answer.success) {
      const reason = jsonText(body, 'detail') ?? 'no reason given';
      throw new Error(`the service answered ${response.status}: ${clipText(reason, MAX_REASON)}`);
    }
    return answer.data;
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
