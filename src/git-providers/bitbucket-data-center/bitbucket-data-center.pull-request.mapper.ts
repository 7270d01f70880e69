import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.types.js';
import { toOpenedChangeRequest } from '../opened-change-request.js';

/** A project's key and a repository's slug. */
export interface DataCenterAddress {
  project: string;
  slug: string;
}

/** The body of the request that opens a pull request. Older servers know no drafts, so only a draft says so. */
export function newPullRequest(
  address: DataCenterAddress,
  request: NewChangeRequest,
  targetBranch: string,
): Record<string, unknown> {
  const { sourceBranch, title, body, draft } = request;
  return {
    title,
    description: body,
    fromRef: refOf(address, sourceBranch),
    toRef: refOf(address, targetBranch),
    ...(draft && { draft: true }),
  };
}

/** Full name of a branch. */
export function branchRef(branch: string): string {
  return `refs/heads/${branch}`;
}

/** Whether a pull request goes to that branch of that repository: those of one source branch are listed together. */
export function goesTo(value: unknown, address: DataCenterAddress, targetBranch: string): boolean {
  return (
    jsonText(value, 'toRef', 'id') === branchRef(targetBranch) &&
    jsonText(value, 'toRef', 'repository', 'slug')?.toLowerCase() === address.slug.toLowerCase() &&
    jsonText(value, 'toRef', 'repository', 'project', 'key')?.toLowerCase() === address.project.toLowerCase()
  );
}

/** One pull request; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(
    jsonNumber(value, 'id'),
    jsonText(jsonList(value, 'links', 'self')[0], 'href'),
  );
}

/** Name of a branch resource such as the default branch, `main` or `release/1`. */
export function toBranchName(value: unknown): string | null {
  const id = jsonText(value, 'id');
  return jsonText(value, 'displayId') ?? id?.replace(/^refs\/heads\//, '') ?? null;
}

/** Why the server refused: the messages of its errors, with the member that each is about. */
export function dataCenterReasons(body: unknown): string[] {
  return jsonList(body, 'errors')
    .map((error) => {
      const message = jsonText(error, 'message');
      const context = jsonAt(error, 'context');
      return message !== null && typeof context === 'string' ? `${context}: ${message}` : message;
    })
    .filter((text) => text !== null);
}

function refOf({ project, slug }: DataCenterAddress, branch: string): Record<string, unknown> {
  return { id: branchRef(branch), repository: { slug, project: { key: project } } };
}
