import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  flag,
  instant,
  list,
  number,
  name,
  object,
  requiredInstant,
  requiredList,
  requiredName,
  requiredText,
  text,
} from '../response-schema.js';

/** Becomes part of addresses, so only harmless characters pass. */
const repositoryName = requiredName.regex(/^[.-]*\w[\w.-]*\/[.-]*\w[\w.-]*$/);

export const pageSchema = object({ values: z.unknown().optional(), next: text });

const isPresent = z.preprocess((value) => (value ?? null) !== null, z.boolean());

const pullRequestSchema = object({
  id: z.number(),
  title: requiredName,
  draft: flag,
  updated_on: requiredInstant,
  comment_count: number,
  task_count: number,
  source: object({ commit: object({ hash: text }) }),
  destination: object({
    commit: object({ hash: text }),
    repository: object({ full_name: repositoryName }),
  }),
  participants: list(object({ state: text })),
});
export type BitbucketListedPullRequest = z.output<typeof pullRequestSchema>;

export const pullRequestsSchema = list(pullRequestSchema);

const repositorySchema = object({
  full_name: repositoryName,
  updated_on: requiredInstant,
  mainbranch: object({ name: text }),
  parent: object({ full_name: text }),
});
export type BitbucketListedRepository = z.output<typeof repositorySchema>;

export const repositoriesSchema = list(repositorySchema);

const foundRepositorySchema = object({
  uuid: requiredName,
  full_name: repositoryName,
  is_private: z.boolean(),
  updated_on: instant,
  mainbranch: object({ name }),
  owner: object({ type: text }),
});
export type BitbucketFoundRepository = z.output<typeof foundRepositorySchema>;

export const foundRepositoriesSchema = requiredList(foundRepositorySchema);

const branchSchema = object({
  name: requiredName,
  target: object({ hash: requiredName, date: instant }),
});
export type BitbucketBranch = z.output<typeof branchSchema>;

export const branchesSchema = requiredList(branchSchema);

export const workspacesSchema = list(object({ workspace: object({ slug: requiredName }) }));

const statusSchema = object({ state: text, key: text, updated_on: instant });
export type BitbucketStatus = z.output<typeof statusSchema>;

export const statusesSchema = list(statusSchema);

const commentSchema = object({
  deleted: flag,
  pending: flag,
  parent: isPresent,
  resolution: isPresent,
  inline: isPresent,
  user: object({ uuid: text }),
});
export type BitbucketComment = z.output<typeof commentSchema>;

export const commentsSchema = list(commentSchema);

export const conflictsSchema = object({ values: z.array(z.unknown()).nullable().catch(null) });
export type BitbucketConflicts = z.output<typeof conflictsSchema>;

const entrySchema = object({ path: requiredText });
export type BitbucketEntry = z.output<typeof entrySchema>;

export const entriesSchema = list(entrySchema);

export const accountSchema = object({
  uuid: text,
  account_id: text,
  username: text,
  nickname: text,
  display_name: text,
  links: object({ avatar: object({ href: text }) }),
});
export type BitbucketAccount = z.output<typeof accountSchema>;

/** The highest of each account (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-workspaces/). */
export const permissionsSchema = requiredList(object({ permission: text, user: object({ uuid: text }) }));

export const slugsSchema = requiredList(object({ slug: text }));

export const mainBranchSchema = object({ mainbranch: object({ name: text }) });

export const openedPullRequestSchema = object({
  id: number,
  links: object({ html: object({ href: text }) }),
});
export type BitbucketOpenedPullRequest = z.output<typeof openedPullRequestSchema>;

export const openedPullRequestsSchema = object({ values: list(openedPullRequestSchema) });

export const refusalSchema = object({
  error: object({
    message: text,
    detail: text,
    fields: namedValues(z.string(), z.unknown()).catch({}),
  }),
});
export type BitbucketRefusal = z.output<typeof refusalSchema>;
