import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  flag,
  knownFlag,
  list,
  number,
  object,
  requiredId,
  requiredList,
  requiredName,
  requiredText,
  text,
} from '../response-schema.js';

/** Becomes part of addresses, so only harmless characters pass. Linear: the server may be anybody's. */
const slug = requiredName.regex(/^[.-]*\w[\w.-]*$/);
/** Personal projects have a key such as `~jane`. */
export const projectKey = requiredName.regex(/^~?[.-]*\w[\w.-]*$/);

const repositorySchema = object({
  slug,
  project: object({ key: projectKey }),
  /** Since version 8. */
  archived: flag,
  origin: object({ slug: text }),
});
export type DataCenterListedRepository = z.output<typeof repositorySchema>;

const pullRequestSchema = object({
  id: z.number(),
  title: requiredName,
  /** Epoch milliseconds. */
  updatedDate: z.number(),
  /** Missing on older servers. */
  draft: flag,
  fromRef: object({ latestCommit: text }),
  toRef: object({ repository: repositorySchema }),
  reviewers: list(object({ status: text })),
  properties: object({
    openTaskCount: number,
    /** Missing until the server has tried the merge in the background. */
    mergeResult: object({ outcome: text }),
  }),
});
export type DataCenterListedPullRequest = z.output<typeof pullRequestSchema>;

export const pullRequestPageSchema = object({ values: list(pullRequestSchema), isLastPage: knownFlag });

export const repositoryPageSchema = object({ values: list(repositorySchema), isLastPage: knownFlag });

export const buildStatsSchema = namedValues(z.string(), object({ failed: number })).catch({});
export type DataCenterBuildStats = z.output<typeof buildStatsSchema>;

export const folderSchema = object({
  children: object({
    values: list(object({ path: object({ toString: requiredText }) }), 500),
    isLastPage: knownFlag,
  }),
});
export type DataCenterListedFolder = z.output<typeof folderSchema>;

const pageMembers = { isLastPage: z.boolean(), nextPageStart: z.int().positive().nullable().catch(null) };

const foundRepositorySchema = object({
  id: requiredId,
  slug,
  project: object({ key: projectKey, type: text }),
  public: flag,
});
export type DataCenterFoundRepository = z.output<typeof foundRepositorySchema>;

export const foundRepositoriesSchema = z.object({
  ...pageMembers,
  values: requiredList(foundRepositorySchema),
});

export const projectsSchema = z.object({
  ...pageMembers,
  values: requiredList(object({ key: projectKey })),
});

const listedBranchSchema = object({ displayId: requiredName, latestCommit: requiredName });
export type DataCenterListedBranch = z.output<typeof listedBranchSchema>;

export const listedBranchesSchema = z.object({ ...pageMembers, values: requiredList(listedBranchSchema) });

export const accountSchema = z.object({
  id: z.number(),
  name: requiredText,
  displayName: text,
  emailAddress: text,
  avatarUrl: text,
});
export type DataCenterAccount = z.output<typeof accountSchema>;

export const usersSchema = object({ values: list(object({ name: text, active: flag })) });

export const branchSchema = object({ id: text, displayId: text });
export type DataCenterBranch = z.output<typeof branchSchema>;

export const openedPullRequestSchema = object({
  id: number,
  links: object({ self: list(object({ href: text })) }),
  toRef: object({ id: text, repository: object({ slug: text, project: object({ key: text }) }) }),
});
export type DataCenterOpenedPullRequest = z.output<typeof openedPullRequestSchema>;

export const openedPullRequestsSchema = object({ values: list(openedPullRequestSchema) });

export const refusalSchema = object({ errors: list(object({ message: text, context: text })) });
export type DataCenterRefusal = z.output<typeof refusalSchema>;
