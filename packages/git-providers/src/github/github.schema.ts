import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  flag,
  list,
  listOrNull,
  name,
  object,
  requiredId,
  requiredInstant,
  requiredList,
  requiredName,
  requiredText,
  instant,
  text,
  number,
} from '../response-schema.js';

const THREADS = 30;
/** GitHub sends all entries of a folder, by name. */
const MAX_TREE_ENTRIES = 500;

const repositorySchema = object({
  nameWithOwner: requiredName,
  isArchived: flag,
  isDisabled: flag,
  pushedAt: instant,
});
export type GithubRepository = z.output<typeof repositorySchema>;

const itemMembers = {
  number: z.number(),
  title: requiredName,
  updatedAt: requiredInstant,
  repository: repositorySchema,
};
export type GithubItem = z.output<z.ZodObject<typeof itemMembers>>;

const pullRequestSchema = object({
  ...itemMembers,
  id: text,
  isDraft: flag,
  mergeable: text,
  commits: object({
    nodes: listOrNull(object({ commit: object({ statusCheckRollup: object({ state: text }) }) }), 1),
  }),
  reviewThreads: object({ nodes: listOrNull(z.object({ isResolved: z.boolean() }), THREADS) }),
  /** Missing on older Enterprise Servers. */
  latestOpinionatedReviews: object({ nodes: list(object({ state: text }), 10) }),
});
export type GithubPullRequest = z.output<typeof pullRequestSchema>;

export const pullRequestsSchema = object({
  viewer: object({
    login: text,
    pullRequests: object({ nodes: list(pullRequestSchema), pageInfo: object({ hasNextPage: flag }) }),
  }),
});
export type GithubPullRequests = z.output<typeof pullRequestsSchema>;

const treeSchema = object({ entries: listOrNull(z.object({ name: requiredName }), MAX_TREE_ENTRIES) });
export type GithubTree = z.output<typeof treeSchema>;

const probedRepositorySchema = object({
  ...repositorySchema.out.shape,
  isEmpty: flag,
  isFork: flag,
  /** Missing on older Enterprise Servers. */
  isMirror: flag,
  viewerPermission: text,
  root: treeSchema,
  microagents: treeSchema,
  skills: treeSchema,
});
export type GithubProbedRepository = z.output<typeof probedRepositorySchema>;

export const repositoriesAndIssuesSchema = object({
  viewer: object({
    login: text,
    recent: object({ nodes: list(repositorySchema) }),
    probe: object({ nodes: list(probedRepositorySchema, 10) }),
  }),
  assigned: object({
    nodes: list(object({ ...itemMembers, __typename: z.literal('Issue') })),
    pageInfo: object({ hasNextPage: flag }),
  }),
});
export type GithubRepositoriesAndIssues = z.output<typeof repositoriesAndIssuesSchema>;

/** Nodes that are gone are null and drop out. */
export const mergeabilitySchema = object({
  nodes: list(object({ id: requiredText, mergeable: requiredText })),
});
export type GithubMergeability = z.output<typeof mergeabilitySchema>;

const viewerSchema = object({ viewer: object({ login: text }) });

export const graphqlErrorSchema = object({
  type: text,
  message: text,
  path: list(z.union([z.string(), z.number()])),
  extensions: object({ saml_failure: flag, code: text }),
});
export type GithubGraphqlError = z.output<typeof graphqlErrorSchema>;

/** What octokit throws, stripped of the request, which holds the token. */
export const graphqlFailureSchema = z.object({
  response: z.object({ data: z.unknown().optional(), errors: list(graphqlErrorSchema) }),
  headers: namedValues(z.string(), z.union([z.string(), z.number()])).catch({}),
});

export const accountSchema = z.object({
  id: z.number(),
  login: requiredText,
  avatar_url: text,
  company: text,
  name: text,
  email: text,
});
export type GithubAccount = z.output<typeof accountSchema>;

export const permissionSchema = object({ permission: text, user: object({ id: number }) });

export const restRepositorySchema = object({ default_branch: text });

const listedRepositorySchema = z.object({
  id: requiredId,
  full_name: requiredName,
  private: z.boolean(),
  stargazers_count: number,
  pushed_at: instant,
  default_branch: name,
  owner: object({ type: text }),
});
export type GithubListedRepository = z.output<typeof listedRepositorySchema>;

export const listedRepositoriesSchema = requiredList(listedRepositorySchema);

export const installedRepositoriesSchema = z.object({ repositories: listedRepositoriesSchema });

export const searchedRepositoriesSchema = z.object({
  total_count: z.number(),
  items: listedRepositoriesSchema,
});

export const installationsSchema = z.object({ installations: requiredList(z.object({ id: requiredId })) });

export const organizationsSchema = requiredList(z.object({ login: requiredName }));

const listedBranchSchema = z.object({
  name: requiredName,
  commit: z.object({ sha: requiredName }),
  protected: flag,
});
export type GithubListedBranch = z.output<typeof listedBranchSchema>;

export const listedBranchesSchema = requiredList(listedBranchSchema);

const foundBranchSchema = z.object({
  name: requiredName,
  target: z.object({ oid: requiredName, committedDate: instant }),
  branchProtectionRule: z.preprocess((value) => (value ?? null) !== null, z.boolean()),
});
export type GithubFoundBranch = z.output<typeof foundBranchSchema>;

/** No nodes for a missing repository. */
const branchSearchSchema = object({
  repository: object({ refs: object({ nodes: listOrNull(foundBranchSchema) }) }),
});
export type GithubBranchSearch = z.output<typeof branchSearchSchema>;

export const restPullRequestSchema = object({ number, html_url: text, head: object({ ref: text }) });
export type GithubRestPullRequest = z.output<typeof restPullRequestSchema>;

export const restPullRequestsSchema = list(restPullRequestSchema);

export const refusalSchema = object({
  message: text,
  errors: list(z.union([requiredText, z.object({ message: text, field: text, code: text })])),
});
export type GithubRefusal = z.output<typeof refusalSchema>;

export interface GithubDocument<Data> {
  text: string;
  /** The query for older Enterprise Servers, which lack some fields. */
  fallbackText: string;
  pageSizes: Readonly<Record<string, number>>;
  schema: z.ZodType<Data>;
}

/**
 * Costs 2 of 5,000 points an hour
 * (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api). Comments of threads
 * would multiply that by eight. `last`, because open threads are usually the newest.
 */
export const PULL_REQUESTS_DOCUMENT: GithubDocument<GithubPullRequests> = {
  text: pullRequests('latestOpinionatedReviews(last: 10) { nodes { state } }'),
  fallbackText: pullRequests(),
  pageSizes: { prs: 50, threads: THREADS },
  schema: pullRequestsSchema,
};

/** Costs 1 point. Issues come from the search: `viewer.issues` lists what the user wrote, not what is assigned. */
export const REPOSITORIES_AND_ISSUES_DOCUMENT: GithubDocument<GithubRepositoriesAndIssues> = {
  text: repositoriesAndIssues('isMirror'),
  fallbackText: repositoriesAndIssues(),
  pageSizes: { repos: 100, probe: 10, issues: 50 },
  schema: repositoriesAndIssuesSchema,
};

/** Reading an UNKNOWN `mergeable` makes GitHub compute it. */
export const RECHECK_MERGEABLE_DOCUMENT = unchanging(
  `query RecheckMergeable($ids: [ID!]!) {
  nodes(ids: $ids) { ... on PullRequest { id mergeable } }
}`,
  mergeabilitySchema,
);

/** At most 100 branches; the REST list cannot be searched. */
export const BRANCHES_DOCUMENT: GithubDocument<GithubBranchSearch> = {
  ...unchanging(
    `query Branches($owner: String!, $name: String!, $text: String!, $count: Int = 100) {
  repository(owner: $owner, name: $name) {
    refs(refPrefix: "refs/heads/", query: $text, first: $count, orderBy: {field: ALPHABETICAL, direction: ASC}) {
      nodes { name target { oid ... on Commit { committedDate } } branchProtectionRule { id } }
    }
  }
}`,
    branchSearchSchema,
  ),
  pageSizes: { count: 100 },
};

/** The same about another user than that of the token, who is named as the viewer is. */
export function documentOf<Data>(login: string, document: GithubDocument<Data>): GithubDocument<Data> {
  const about = (query: string): string =>
    query
      .replace('viewer {', `viewer: user(login: ${JSON.stringify(login)}) {`)
      .replace('assignee:@me', `assignee:${login.replaceAll(/[^\w-]/g, '')}`);
  return { ...document, text: about(document.text), fallbackText: about(document.fallbackText) };
}

export const VIEWER_DOCUMENT = unchanging('query Viewer { viewer { login } }', viewerSchema);

function unchanging<Data>(query: string, schema: z.ZodType<Data>): GithubDocument<Data> {
  return { text: query, fallbackText: query, pageSizes: {}, schema };
}

function pullRequests(reviews = ''): string {
  return `query SuggestedTaskPRs($prs: Int = 50, $threads: Int = ${THREADS}) {
  viewer {
    login
    pullRequests(first: $prs, states: [OPEN], orderBy: {field: UPDATED_AT, direction: DESC}) {
      pageInfo { hasNextPage }
      nodes {
        id
        number
        title
        isDraft
        updatedAt
        mergeable
        repository { nameWithOwner isArchived isDisabled pushedAt }
        commits(last: 1) { nodes { commit { statusCheckRollup { state } } } }
        reviewThreads(last: $threads) { nodes { isResolved } }
        ${reviews}
      }
    }
  }
}`;
}

function repositoriesAndIssues(mirror = ''): string {
  return `query SuggestedTaskReposAndIssues($repos: Int = 100, $probe: Int = 10, $issues: Int = 50,
  $q: String = "is:issue is:open archived:false assignee:@me sort:updated-desc") {
  viewer {
    login
    recent: repositories(first: $repos, affiliations: [OWNER, COLLABORATOR, ORGANIZATION_MEMBER],
      ownerAffiliations: [OWNER, COLLABORATOR, ORGANIZATION_MEMBER], orderBy: {field: PUSHED_AT, direction: DESC}) {
      nodes { nameWithOwner pushedAt isArchived isDisabled }
    }
    probe: repositories(first: $probe, affiliations: [OWNER, COLLABORATOR, ORGANIZATION_MEMBER],
      ownerAffiliations: [OWNER, COLLABORATOR, ORGANIZATION_MEMBER], orderBy: {field: PUSHED_AT, direction: DESC}) {
      nodes {
        nameWithOwner
        pushedAt
        isArchived
        isDisabled
        isEmpty
        isFork
        ${mirror}
        viewerPermission
        root: object(expression: "HEAD:") { ... on Tree { entries { name } } }
        microagents: object(expression: "HEAD:.openhands/microagents") { ... on Tree { entries { name } } }
        skills: object(expression: "HEAD:.openhands/skills") { ... on Tree { entries { name } } }
      }
    }
  }
  assigned: search(type: ISSUE, query: $q, first: $issues) {
    pageInfo { hasNextPage }
    nodes { __typename ... on Issue { number title updatedAt repository { nameWithOwner isArchived isDisabled pushedAt } } }
  }
}`;
}
