import { isRefusal } from './change-refusal.js';
import { GitProviderError } from './git-provider.error.js';
import type { NewChangeRequest, OpenedChangeRequest } from './git-provider.types.js';

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
