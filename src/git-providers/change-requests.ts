import { UpstreamError } from '../common/http/upstream-error.js';
import { GitProviderError, type NewChangeRequest, type OpenedChangeRequest } from './git-provider.js';
import { providerErrorFromResponse, type ProviderResponseHead, type RefusalBody } from './provider-errors.js';

export interface ChangeRequestHost {
  /** Null for an empty repository. */
  defaultBranch(): Promise<string | null>;
  findOpen(sourceBranch: string, targetBranch: string): Promise<OpenedChangeRequest | null>;
  /** Sent once: if the response is lost, the change may have been made. */
  create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest>;
}

const NOT_FOUND = 'the repository or branch does not exist, or the token may not see it';

/**
 * Opens a change request, or returns the one that is open. Looks first, since Bitbucket Cloud overwrites an existing
 * one, and again after a failure: another request may have been quicker, or only the response was lost.
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

/** The error for a refused change: a 4xx without a meaning of its own is `unsupported` with the host's `reason`. */
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

export function toOpenedChangeRequest(number: number | null, url: string | null): OpenedChangeRequest | null {
  const isUsable =
    number !== null &&
    Number.isInteger(number) &&
    url !== null &&
    /^https?:\/\//.test(url) &&
    URL.canParse(url);
  return isUsable ? { number, url } : null;
}

/** Checks the response to a creation. @throws GitProviderError `unavailable` when it holds no change request */
export function requireOpened(opened: OpenedChangeRequest | null, origin: string): OpenedChangeRequest {
  if (!opened) {
    throw new GitProviderError('unavailable', { cause: new UpstreamError('malformed', origin) });
  }
  return opened;
}

/** Requires a response. @throws GitProviderError with a reason for null, which stands for 404 */
export function requireRepository<T>(response: T | null): T {
  if (response === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository does not exist, or the token may not see it',
    });
  }
  return response;
}

function isRefusal(error: unknown): boolean {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}
