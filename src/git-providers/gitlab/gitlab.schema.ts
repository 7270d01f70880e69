import { z } from 'zod';
import {
  flag,
  instant,
  list,
  listOrNull,
  name,
  number,
  object,
  requiredId,
  requiredInstant,
  requiredList,
  requiredName,
  requiredText,
  text,
} from '../response-schema.js';

const positiveInteger = z.int().positive();

const projectSchema = object({ fullPath: requiredName, archived: flag, lastActivityAt: instant });
export type GitlabProject = z.output<typeof projectSchema>;

const mergeRequestSchema = object({
  project: projectSchema,
  /** A number as text. */
  iid: requiredText.transform(Number).pipe(positiveInteger),
  title: requiredName,
  updatedAt: requiredInstant,
  draft: flag,
  conflicts: flag,
  mergeStatusEnum: text,
  /** Null without a pipeline, and also where the user may not see pipelines. */
  headPipeline: object({ status: text }),
  resolvableDiscussionsCount: number,
  resolvedDiscussionsCount: number,
  /** In place of the two counters from older servers. */
  discussions: object({
    nodes: listOrNull(z.object({ resolvable: z.boolean(), resolved: z.boolean() }), 30),
  }),
});
export type GitlabMergeRequest = z.output<typeof mergeRequestSchema>;

/** Of the files, or of the folders, in a folder. */
const entriesMembers = { nodes: list(z.object({ path: requiredText })) };
export type GitlabEntries = z.output<z.ZodObject<typeof entriesMembers>>;

const folderSchema = object({ blobs: object(entriesMembers) });

const probedProjectSchema = object({
  ...projectSchema.out.shape,
  userPermissions: object({ pushCode: flag }),
  repository: object({
    empty: z.boolean(),
    /** Null without a commit, and where it is not readable. */
    root: z
      .object({ blobs: z.object(entriesMembers).nullable(), trees: object(entriesMembers) })
      .nullable()
      .catch(null),
    micro: folderSchema,
    skills: folderSchema,
  }),
});
export type GitlabProbedProject = z.output<typeof probedProjectSchema>;

/** `data` of {@link SUGGESTED_TASKS_DOCUMENT}. */
export const workSchema = object({
  currentUser: object({
    username: text,
    /** Null where reading it failed. */
    authoredMergeRequests: object({
      nodes: list(mergeRequestSchema),
      pageInfo: object({ hasNextPage: flag }),
    }).nullable(),
  }),
  /** Null where reading it failed. */
  recent: object({ nodes: list(projectSchema) }).nullable(),
  probe: object({ nodes: list(probedProjectSchema) }),
});
export type GitlabWork = z.output<typeof workSchema>;

/** `data` of {@link CURRENT_USER_DOCUMENT}. */
export const currentUserSchema = object({ currentUser: object({ username: text }) });
export type GitlabCurrentUser = z.output<typeof currentUserSchema>;

const graphqlErrorSchema = object({
  message: text,
  extensions: object({ code: text, fieldName: text }),
});
export type GitlabGraphqlError = z.output<typeof graphqlErrorSchema>;

export const graphqlResponseSchema = object({
  data: z.unknown().optional(),
  errors: listOrNull(graphqlErrorSchema),
});

/** `GET /issues`. */
export const issuesSchema = list(
  object({
    iid: positiveInteger,
    title: requiredName,
    updated_at: requiredInstant,
    /** Servers of before issue types send none. */
    issue_type: text,
    references: object({ full: requiredName }),
  }),
);
export type GitlabIssue = z.output<typeof issuesSchema>[number];

/** `GET /user`. */
export const accountSchema = z.object({
  id: z.number(),
  username: requiredText,
  avatar_url: text,
  organization: text,
  name: text,
  email: text,
});
export type GitlabAccount = z.output<typeof accountSchema>;

/** `GET /projects/{id}`. */
export const restProjectSchema = object({ default_branch: text });

const listedProjectSchema = z.object({
  id: requiredId,
  path_with_namespace: requiredName,
  visibility: text,
  star_count: number,
  last_activity_at: instant,
  default_branch: name,
  namespace: object({ kind: text }),
});
export type GitlabListedProject = z.output<typeof listedProjectSchema>;

/** `GET /projects`. */
export const listedProjectsSchema = requiredList(listedProjectSchema);

const listedBranchSchema = z.object({
  name: requiredName,
  commit: z.object({ id: requiredName, committed_date: instant }),
  protected: flag,
});
export type GitlabListedBranch = z.output<typeof listedBranchSchema>;

/** `GET /projects/{id}/repository/branches`. */
export const listedBranchesSchema = requiredList(listedBranchSchema);

/** A merge request of the REST API. */
export const restMergeRequestSchema = object({
  iid: number,
  web_url: text,
  source_project_id: number,
  target_project_id: number,
});
export type GitlabRestMergeRequest = z.output<typeof restMergeRequestSchema>;

/** `GET /projects/{id}/merge_requests`. */
export const restMergeRequestsSchema = list(restMergeRequestSchema);

/** A refusal by the REST API. Its members are texts, lists of texts, or lists by attribute. */
export const refusalSchema = object({
  message: z.unknown().optional(),
  error: z.unknown().optional(),
  error_description: z.unknown().optional(),
});
export type GitlabRefusal = z.output<typeof refusalSchema>;

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
