import type { GuardedHttpClient } from '../common/http/guarded-http.client.js';
import { readJson } from '../common/http/response-body.js';
import { UpstreamError } from '../common/http/upstream-error.js';
import {
  GitProviderError,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderCall,
} from './git-provider.js';
import {
  providerErrorFromResponse,
  providerErrorFromUpstream,
  providerReason,
  type ProviderResponseHead,
  type RetryTiming,
  timeLeft,
} from './provider-http.js';

const NOT_FOUND = 'the repository or branch does not exist, or the token may not see it';

/**
 * What it means that a change was answered with something else than success. A refusal (any 4xx without a meaning of
 * its own) is `unsupported` with a `reason`, a missing permission `insufficient_scope` with one.
 *
 * @param reason what the provider said, fit to show
 * @param nowMs epoch milliseconds
 */
export function changeRefusal(
  response: ProviderResponseHead,
  reason: string | null,
  nowMs: number,
  bodyText = '',
): GitProviderError {
  const failure = providerErrorFromResponse(response, nowMs, bodyText);
  if (failure?.code === 'insufficient_scope') {
    return new GitProviderError('insufficient_scope', { reason: reason ?? 'the permission is missing' });
  }
  if (failure) {
    return failure;
  }
  const because = response.status === 404 ? NOT_FOUND : `answered with ${response.status}`;
  return new GitProviderError('unsupported', {
    reason: reason === null ? because : response.status === 404 ? `${NOT_FOUND} (${reason})` : reason,
  });
}

/** Whether a provider refused a change for certain, and said why. */
function isRefusal(error: unknown): boolean {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}

/** The three requests that opening a change request takes, for one repository of one user. */
export interface ChangeRequestHost {
  /** Name of the default branch; null for a repository without one. */
  defaultBranch(): Promise<string | null>;
  /** The open change request between two branches of the repository. */
  findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null>;
  /** Sent once: nothing tells whether a change whose answer was lost has been made. */
  create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest>;
}

/**
 * Opens a change request, or answers the one that is open already. It is looked for first, as hosts differ in what they
 * do with a second one (Bitbucket Cloud writes over the first), and once more when the creation failed: another request
 * may have been quicker, or only the answer may have been lost.
 *
 * @throws GitProviderError with a `reason` when the host refuses
 */
export async function openOrFind(
  host: ChangeRequestHost,
  request: NewChangeRequest,
): Promise<OpenedChangeRequest> {
  const targetBranch = request.targetBranch ?? (await host.defaultBranch());
  if (targetBranch === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository has no default branch: name the target branch',
    });
  }
  const existing = await host.findOpen(request.sourceBranch, targetBranch);
  if (existing) {
    return existing;
  }
  try {
    return await host.create(request, targetBranch);
  } catch (error) {
    const mayExist = isRefusal(error) || (error instanceof GitProviderError && error.code === 'unavailable');
    const meanwhile = mayExist ? await host.findOpen(request.sourceBranch, targetBranch) : null;
    if (meanwhile) {
      return meanwhile;
    }
    throw error;
  }
}

/** A change request out of its number and page; null when an answer lacks one of them. */
export function toOpenedChangeRequest(number: number | null, url: string | null): OpenedChangeRequest | null {
  const isUsable =
    number !== null &&
    Number.isInteger(number) &&
    url !== null &&
    /^https?:\/\//.test(url) &&
    URL.canParse(url);
  return isUsable ? { number, url } : null;
}

/**
 * The change request that an answer to its creation tells of.
 *
 * @throws GitProviderError `unavailable` when it tells of none
 */
export function requireOpened(opened: OpenedChangeRequest | null, origin: string): OpenedChangeRequest {
  if (!opened) {
    throw new GitProviderError('unavailable', { cause: new UpstreamError('malformed', origin) });
  }
  return opened;
}

/**
 * What was read about a repository; null is the 404 of one that is not there.
 *
 * @throws GitProviderError with a reason for null
 */
export function requireRepository<T>(answer: T | null): T {
  if (answer === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository does not exist, or the token may not see it',
    });
  }
  return answer;
}

interface ChangeToSend {
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
