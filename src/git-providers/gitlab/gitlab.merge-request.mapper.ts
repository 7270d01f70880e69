import { jsonAt, jsonNumber, jsonText } from '../../common/json-access.js';
import type { NewChangeRequest, OpenedChangeRequest } from '../git-provider.types.js';
import { toOpenedChangeRequest } from '../opened-change-request.js';

/** A title that makes a draft (https://docs.gitlab.com/user/project/merge_requests/drafts/). */
const DRAFT_TITLE = /^\s*(draft:|\[draft\]|\(draft\))/i;

/** The body of the request that opens a merge request. */
export function newMergeRequest(request: NewChangeRequest, targetBranch: string): Record<string, string> {
  const { sourceBranch, title, body, draft } = request;
  return {
    source_branch: sourceBranch,
    target_branch: targetBranch,
    title: draft && !DRAFT_TITLE.test(title) ? `Draft: ${title}` : title,
    description: body,
  };
}

/** One merge request of the REST API; null when it lacks its number or page. */
export function toOpenedMergeRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'iid'), jsonText(value, 'web_url'));
}

/** Whether both branches are in the project itself: those of forks are listed too, and may have the same name. */
export function isWithinProject(value: unknown): boolean {
  const source = jsonNumber(value, 'source_project_id');
  return source !== null && source === jsonNumber(value, 'target_project_id');
}

/**
 * Why GitLab refused: `message` is a text, a list, or lists by attribute; some answers have `error` instead
 * (https://docs.gitlab.com/api/rest/troubleshooting/).
 */
export function gitlabReasons(body: unknown): string[] {
  const texts = [...textsOf(jsonAt(body, 'message')), ...textsOf(jsonAt(body, 'error_description'))];
  return texts.length > 0 ? texts : textsOf(jsonAt(body, 'error'));
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') {
    return [value];
  }
  if (Array.isArray(value)) {
    return value.flatMap(textsOf);
  }
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, inner]) =>
        textsOf(inner).map((text) => (name === 'base' ? text : `${name}: ${text}`)),
      )
    : [];
}
