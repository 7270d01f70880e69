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
  iid: requiredText.transform(Number).pipe(positiveInteger),
  title: requiredName,
  updatedAt: requiredInstant,
  draft: flag,
  conflicts: flag,
  mergeStatusEnum: text,
  /** The newest pipeline; null when there is none, or no permission to see pipelines. */
  headPipeline: object({ status: text }),
  resolvableDiscussionsCount: number,
  resolvedDiscussionsCount: number,
  /** Replaces the two counters on older servers. */
  discussions: object({
    nodes: listOrNull(z.object({ resolvable: z.boolean(), resolved: z.boolean() }), 30),
  }),
});
export type GitlabMergeRequest = z.output<typeof mergeRequestSchema>;

/** A member of a project, inherited from its groups or not (https://docs.gitlab.com/api/members/). */
export const memberSchema = object({
  id: requiredId.nullable().catch(null),
  state: text,
  access_level: number,
});

const entriesMembers = { nodes: list(z.object({ path: requiredText })) };
export type GitlabEntries = z.output<z.ZodObject<typeof entriesMembers>>;

const folderSchema = object({ blobs: object(entriesMembers) });

const probedProjectSchema = object({
  ...projectSchema.out.shape,
  userPermissions: object({ pushCode: flag }),
  repository: object({
    empty: z.boolean(),
    /** The root folder; null when there is no commit, or it is not readable. */
    root: z
      .object({ blobs: z.object(entriesMembers).nullable() })
      .nullable()
      .catch(null),
    micro: folderSchema,
    skills: folderSchema,
  }),
});
export type GitlabProbedProject = z.output<typeof probedProjectSchema>;

export const workSchema = object({
  currentUser: object({
    username: text,
    /** The user's merge requests; null when they could not be read, and `recent` likewise. */
    authoredMergeRequests: object({
      nodes: list(mergeRequestSchema),
      pageInfo: object({ hasNextPage: flag }),
    }).nullable(),
  }),
  recent: object({ nodes: list(projectSchema) }).nullable(),
  probe: object({ nodes: list(probedProjectSchema) }),
});
export type GitlabWork = z.output<typeof workSchema>;

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

export const issuesSchema = requiredList(
  object({
    iid: positiveInteger,
    title: requiredName,
    updated_at: requiredInstant,
    /** Missing on servers from before issue types. */
    issue_type: text,
    references: object({ full: requiredName }),
  }),
);
export type GitlabIssue = z.output<typeof issuesSchema>[number];

export const accountSchema = z.object({
  id: z.number(),
  username: requiredText,
  avatar_url: text,
  organization: text,
  name: text,
  email: text,
});
export type GitlabAccount = z.output<typeof accountSchema>;

export const restProjectSchema = object({ id: number, default_branch: text, path_with_namespace: text });

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

export const listedProjectsSchema = requiredList(listedProjectSchema);

const listedBranchSchema = z.object({
  name: requiredName,
  commit: z.object({ id: requiredName, committed_date: instant }),
  protected: flag,
});
export type GitlabListedBranch = z.output<typeof listedBranchSchema>;

export const listedBranchesSchema = requiredList(listedBranchSchema);

export const restMergeRequestSchema = object({
  iid: number,
  web_url: text,
  source_project_id: number,
  target_project_id: number,
});
export type GitlabRestMergeRequest = z.output<typeof restMergeRequestSchema>;

export const restMergeRequestsSchema = list(restMergeRequestSchema);

/** Members are texts, lists of texts, or lists by attribute. */
export const refusalSchema = object({
  message: z.unknown().optional(),
  error: z.unknown().optional(),
  error_description: z.unknown().optional(),
});
export type GitlabRefusal = z.output<typeof refusalSchema>;

/**
 * Costs about 60 of a caller's 250 points (https://docs.gitlab.com/api/graphql/#limits). `detailedMergeStatus`,
 * `divergedFromTargetBranch` and `sourceBranchExists` stay out: each costs a Git access per merge request.
 */
export const SUGGESTED_TASKS_DOCUMENT = suggestedTasks('resolvableDiscussionsCount resolvedDiscussionsCount');

/** Query for servers that lack the two counters: the last 30 discussions are counted here. */
export const SUGGESTED_TASKS_FALLBACK_DOCUMENT = suggestedTasks(
  'discussions(last: 30) { nodes { resolvable resolved } }',
);

export const CURRENT_USER_DOCUMENT = 'query CurrentUser { currentUser { username } }';

export const DISCUSSION_COUNT_FIELDS: readonly string[] = [
  'resolvableDiscussionsCount',
  'resolvedDiscussionsCount',
];

function suggestedTasks(discussionFields: string): string {
  return `query SuggestedTasks($mrs: Int = 50, $recent: Int = 50, $probe: Int = 5) {
  currentUser {
    username
    authoredMergeRequests(state: opened, sort: UPDATED_DESC, first: $mrs) {
      pageInfo { hasNextPage }
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
        empty
        root: tree(ref: "HEAD") { blobs(first: 100) { nodes { path } } }
        micro: tree(path: ".openhands/microagents", ref: "HEAD") { blobs(first: 20) { nodes { path } } }
        skills: tree(path: ".openhands/skills", ref: "HEAD") { blobs(first: 20) { nodes { path } } }
      }
    }
  }
}`;
}
