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

/** Names become parts of addresses: only `workspace/slug` of harmless characters passes. */
const repositoryName = requiredName.regex(/^[\w.-]*\w[\w.-]*\/[\w.-]*\w[\w.-]*$/);

/** One page of a list. */
export const pageSchema = object({ values: z.unknown().optional(), next: text });

/** Whether a member is there at all, whatever it is. */
const isPresent = z.preprocess((value) => (value ?? null) !== null, z.boolean());

/** The members of {@link pullRequestsSchema}, for the `fields` of a request. */
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

/** `/workspaces/{workspace}/pullrequests/{user}`. */
export const pullRequestsSchema = list(pullRequestSchema);

/** The members of {@link repositoriesSchema}, for the `fields` of a request. */
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

/** `/repositories/{workspace}`. */
export const repositoriesSchema = list(repositorySchema);

/** The members of {@link foundRepositoriesSchema}, for the `fields` of a request. */
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

/** `/repositories/{workspace}`, for lists that people choose from. */
export const foundRepositoriesSchema = requiredList(foundRepositorySchema);

/** The members of {@link branchesSchema}, for the `fields` of a request. */
export const BRANCH_FIELDS = 'next,values.name,values.target.hash,values.target.date';

const branchSchema = object({
  name: requiredName,
  target: object({ hash: requiredName, date: instant }),
});
export type BitbucketBranch = z.output<typeof branchSchema>;

/** `/repositories/{workspace}/{slug}/refs/branches`. */
export const branchesSchema = requiredList(branchSchema);

/** `/user/workspaces`. */
export const workspacesSchema = list(object({ workspace: object({ slug: requiredName }) }));

/** The members of {@link statusesSchema}, for the `fields` of a request. */
export const STATUS_FIELDS = 'next,values.state,values.key,values.updated_on';

const statusSchema = object({ state: text, key: text, updated_on: instant });
export type BitbucketStatus = z.output<typeof statusSchema>;

/** `/pullrequests/{id}/statuses`: runs of checks. */
export const statusesSchema = list(statusSchema);

/** The members of {@link commentsSchema}, for the `fields` of a request. */
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

/** `/pullrequests/{id}/comments`. */
export const commentsSchema = list(commentSchema);

/** `/pullrequests/{id}/conflicts`, a list of conflicting files. */
export const conflictsSchema = object({ values: z.array(z.unknown()).nullable().catch(null) });
export type BitbucketConflicts = z.output<typeof conflictsSchema>;

/** The members of {@link entriesSchema}, for the `fields` of a request. */
export const FOLDER_FIELDS = 'next,values.path';

const entrySchema = object({ path: requiredText });
export type BitbucketEntry = z.output<typeof entrySchema>;

/** `/src/{commit}/{folder}/`. */
export const entriesSchema = list(entrySchema);

/** `/user`. */
export const accountSchema = object({
  uuid: text,
  account_id: text,
  username: text,
  nickname: text,
  display_name: text,
  links: object({ avatar: object({ href: text }) }),
});
export type BitbucketAccount = z.output<typeof accountSchema>;

/** `/repositories/{workspace}/{slug}`, of which only the main branch is asked for. */
export const mainBranchSchema = object({ mainbranch: object({ name: text }) });

/** A pull request that was opened or found. */
export const openedPullRequestSchema = object({
  id: number,
  links: object({ html: object({ href: text }) }),
});
export type BitbucketOpenedPullRequest = z.output<typeof openedPullRequestSchema>;

/** A page of pull requests that were found. */
export const openedPullRequestsSchema = object({ values: list(openedPullRequestSchema) });

/** A refusal: a message, sometimes a detail, and texts by field. */
export const refusalSchema = object({
  error: object({
    message: text,
    detail: text,
    fields: namedValues(z.string(), z.unknown()).catch({}),
  }),
});
export type BitbucketRefusal = z.output<typeof refusalSchema>;
