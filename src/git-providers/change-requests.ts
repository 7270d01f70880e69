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
  parsedOrNull,
  providerErrorFromResponse,
  providerErrorFromUpstream,
  providerReason,
  type ProviderResponseHead,
  type RefusalBody,
} from './provider-errors.js';
import { requestBounds, type RetryTiming } from './provider-http.js';

/** The three requests that opening a change request takes, for one repository of one user. */
export interface ChangeRequestHost {
  /** Name of the default branch; null for a repository without one. */
  defaultBranch(): Promise<string | null>;
  /** The open change request between two branches of the repository. */
  findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null>;
  /** Sent once: nothing tells whether a change whose response was lost has been made. */
  create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest>;
}

interface ChangeToSend {
  url: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST. */
  body: unknown;
  /** Must not appear in a reason. */
  token: string;
  /** The texts of an error response that tell why. */
  reasons: (body: unknown) => string[];
}

const NOT_FOUND = 'the repository or branch does not exist, or the token may not see it';

/**
 * Opens a change request, or returns the one that is open already. It is looked for first, as hosts differ in what they
 * do with a second one (Bitbucket Cloud overwrites the first), and once more when the creation failed: another request
 * may have been quicker, or only the response may have been lost.
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

/**
 * Sends a request that changes something, exactly once, and returns its JSON.
 *
 * @throws GitProviderError as {@link changeRefusal} says, and when no response came in time
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
      ...requestBounds(call, timing.now()),
    });
    if (response.ok) {
      return await readJson(response, new URL(url).origin);
    }
    const text = await response.text();
    const reason = providerReason(reasons(parsedOrNull(text)), token);
    throw changeRefusal(response, reason, timing.now(), { text, token });
  } catch (error) {
    throw providerErrorFromUpstream(error);
  }
}

/**
 * What a response other than a success to a change means. A refusal (any 4xx without a meaning of its own) is
 * `unsupported` with a `reason`; a missing permission and a policy have one too.
 *
 * @param reason what the provider said, fit to show
 * @param nowMs epoch milliseconds
 */
export function changeRefusal(
  response: ProviderResponseHead,
  reason: string | null,
  nowMs: number,
  body: RefusalBody,
): GitProviderError {
  const failure = providerErrorFromResponse(response, nowMs, body);
  if (failure?.code === 'insufficient_scope' || failure?.code === 'blocked_by_policy') {
    return new GitProviderError(failure.code, { reason: reason ?? 'the permission is missing' });
  }
  if (failure) {
    return failure;
  }
  if (response.status === 404) {
    return new GitProviderError('unsupported', {
      reason: reason === null ? NOT_FOUND : `${NOT_FOUND} (${reason})`,
    });
  }
  return new GitProviderError('unsupported', { reason: reason ?? `answered with ${response.status}` });
}

/** A change request of its number and page; null when a response lacks one of them. */
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
 * The change request in the response to its creation.
 *
 * @throws GitProviderError `unavailable` when there is none in it
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
export function requireRepository<T>(response: T | null): T {
  if (response === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository does not exist, or the token may not see it',
    });
  }
  return response;
}

/** Whether a provider refused a change for certain, and said why. */
function isRefusal(error: unknown): boolean {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}
