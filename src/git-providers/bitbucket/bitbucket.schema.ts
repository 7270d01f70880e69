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

export const PULL_REQUEST_FIELDS = [
  'next',
  'values.id',
  'values.title',
  'values.draft',
  'values.updated_on',
  'values.comment_count',
  'values.task_count',
  'values.source.commit.hash',
  'values.destination.commit.hash',
  'values.destination.repository.full_name',
  'values.participants.state',
].join(',');

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

export const REPOSITORY_FIELDS = [
  'values.full_name',
  'values.updated_on',
  'values.mainbranch.name',
  'values.parent.full_name',
].join(',');

const repositorySchema = object({
  full_name: repositoryName,
  updated_on: requiredInstant,
  mainbranch: object({ name: text }),
  parent: object({ full_name: text }),
});
export type BitbucketListedRepository = z.output<typeof repositorySchema>;

export const repositoriesSchema = list(repositorySchema);

export const FOUND_REPOSITORY_FIELDS = [
  'next',
  'values.uuid',
  'values.full_name',
  'values.is_private',
  'values.updated_on',
  'values.mainbranch.name',
  'values.owner.type',
].join(',');

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

export const BRANCH_FIELDS = 'next,values.name,values.target.hash,values.target.date';

const branchSchema = object({
  name: requiredName,
  target: object({ hash: requiredName, date: instant }),
});
export type BitbucketBranch = z.output<typeof branchSchema>;

export const branchesSchema = requiredList(branchSchema);

export const workspacesSchema = list(object({ workspace: object({ slug: requiredName }) }));

export const STATUS_FIELDS = 'next,values.state,values.key,values.updated_on';

const statusSchema = object({ state: text, key: text, updated_on: instant });
export type BitbucketStatus = z.output<typeof statusSchema>;

export const statusesSchema = list(statusSchema);

export const COMMENT_FIELDS = [
  'next',
  'values.id',
  'values.deleted',
  'values.pending',
  'values.parent.id',
  'values.resolution.type',
  'values.inline.path',
  'values.user.uuid',
].join(',');

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

export const FOLDER_FIELDS = 'next,values.path';

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
