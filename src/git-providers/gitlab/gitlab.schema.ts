/**
 * Everything suggested tasks need from one user in one request. Cost by GitLab's own formula: about 60 of the 250
 * points a signed-in caller has (https://docs.gitlab.com/api/graphql/#limits).
 *
 * `detailedMergeStatus`, `divergedFromTargetBranch` and `sourceBranchExists` stay out: each asks the Git storage
 * once per merge request.
 */
export const SUGGESTED_TASKS_DOCUMENT = suggestedTasks('resolvableDiscussionsCount resolvedDiscussionsCount');

/** The same for servers that do not know the two counters yet: the last 30 discussions are counted here. */
export const SUGGESTED_TASKS_FALLBACK_DOCUMENT = suggestedTasks(
  'discussions(last: 30) { nodes { resolvable resolved } }',
);

/** Who the token belongs to; null when the server does not take it. */
export const CURRENT_USER_DOCUMENT = 'query CurrentUser { currentUser { username } }';

/** Fields that decide between the two documents. */
export const DISCUSSION_COUNT_FIELDS: readonly string[] = [
  'resolvableDiscussionsCount',
  'resolvedDiscussionsCount',
];

function suggestedTasks(discussionFields: string): string {
  return `query SuggestedTasks($mrs: Int = 50, $recent: Int = 50, $probe: Int = 5) {
  currentUser {
    username
    authoredMergeRequests(state: opened, sort: UPDATED_DESC, first: $mrs) {
      pageInfo { hasNextPage endCursor }
      nodes {
        iid title draft updatedAt conflicts mergeStatusEnum
        project { fullPath archived lastActivityAt }
        headPipeline { status }
        ${discussionFields}
      }
    }
  }
  recent: projects(membership: true, sort: "latest_activity_desc", first: $recent) {
    nodes { fullPath archived lastActivityAt }
  }
  probe: projects(membership: true, sort: "latest_activity_desc", first: $probe) {
    nodes {
      fullPath archived
      userPermissions { pushCode }
      repository {
        empty rootRef
        root: tree(ref: "HEAD") { blobs(first: 100) { nodes { path } } trees(first: 100) { nodes { path } } }
        micro: tree(path: ".openhands/microagents", ref: "HEAD") { blobs(first: 20) { nodes { path } } }
        skills: tree(path: ".openhands/skills", ref: "HEAD") { blobs(first: 20) { nodes { path } } }
      }
    }
  }
  queryComplexity { score limit }
}`;
}
