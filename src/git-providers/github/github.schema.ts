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

/** Threads of a pull request that are asked for. */
const THREADS = 30;
/** Entries of a folder that are looked at: GitHub sends all of them, by name. */
const MAX_TREE_ENTRIES = 500;

const repositorySchema = object({
  nameWithOwner: requiredName,
  isArchived: flag,
  isDisabled: flag,
  pushedAt: instant,
});
export type GithubRepository = z.output<typeof repositorySchema>;

/** What pull requests and issues have in common. */
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
  /** Absent on older Enterprise Servers. */
  latestOpinionatedReviews: object({ nodes: list(object({ state: text }), 10) }),
});
export type GithubPullRequest = z.output<typeof pullRequestSchema>;

/** `data` of {@link PULL_REQUESTS_DOCUMENT}. */
export const pullRequestsSchema = object({
  viewer: object({
    login: text,
    pullRequests: object({ nodes: list(pullRequestSchema), pageInfo: object({ hasNextPage: flag }) }),
  }),
});
export type GithubPullRequests = z.output<typeof pullRequestsSchema>;

/** A folder of a repository; null entries where it is absent or not readable. */
const treeSchema = object({ entries: listOrNull(z.object({ name: requiredName }), MAX_TREE_ENTRIES) });
export type GithubTree = z.output<typeof treeSchema>;

const probedRepositorySchema = object({
  ...repositorySchema.out.shape,
  isEmpty: flag,
  isFork: flag,
  /** Absent on older Enterprise Servers. */
  isMirror: flag,
  viewerPermission: text,
  root: treeSchema,
  microagents: treeSchema,
  skills: treeSchema,
});
export type GithubProbedRepository = z.output<typeof probedRepositorySchema>;

/** `data` of {@link REPOSITORIES_AND_ISSUES_DOCUMENT}. */
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

/** `data` of {@link RECHECK_MERGEABLE_DOCUMENT}; nodes that are gone are null and drop out. */
export const mergeabilitySchema = object({
  nodes: list(object({ id: requiredText, mergeable: requiredText })),
});
export type GithubMergeability = z.output<typeof mergeabilitySchema>;

const viewerSchema = object({ viewer: object({ login: text }) });

/** An element of a GraphQL response's `errors`. */
export const graphqlErrorSchema = object({
  type: text,
  message: text,
  path: list(z.union([z.string(), z.number()])),
  extensions: object({ saml_failure: flag, code: text }),
});
export type GithubGraphqlError = z.output<typeof graphqlErrorSchema>;

/** What octokit throws for a response with `errors`, stripped of the request that it holds too. */
export const graphqlFailureSchema = z.object({
  response: z.object({ data: z.unknown().optional(), errors: list(graphqlErrorSchema) }),
  headers: namedValues(z.string(), z.union([z.string(), z.number()])).catch({}),
});

/** `GET /user`. */
export const accountSchema = z.object({
  id: z.number(),
  login: requiredText,
  avatar_url: text,
  company: text,
  name: text,
  email: text,
});
export type GithubAccount = z.output<typeof accountSchema>;

/** `GET /repos/{owner}/{repo}`. */
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

/** `GET /user/repos`. */
export const listedRepositoriesSchema = requiredList(listedRepositorySchema);

/** `GET /user/installations/{id}/repositories`. */
export const installedRepositoriesSchema = z.object({ repositories: listedRepositoriesSchema });

/** `GET /search/repositories`. */
export const searchedRepositoriesSchema = z.object({
  total_count: z.number(),
  items: listedRepositoriesSchema,
});

/** `GET /user/installations`. */
export const installationsSchema = z.object({ installations: requiredList(z.object({ id: requiredId })) });

/** `GET /user/orgs`. */
export const organizationsSchema = requiredList(z.object({ login: requiredName }));

const listedBranchSchema = z.object({
  name: requiredName,
  commit: z.object({ sha: requiredName }),
  protected: flag,
});
export type GithubListedBranch = z.output<typeof listedBranchSchema>;

/** `GET /repos/{owner}/{repo}/branches`. */
export const listedBranchesSchema = requiredList(listedBranchSchema);

const foundBranchSchema = z.object({
  name: requiredName,
  target: z.object({ oid: requiredName, committedDate: instant }),
  branchProtectionRule: z.preprocess((value) => (value ?? null) !== null, z.boolean()),
});
export type GithubFoundBranch = z.output<typeof foundBranchSchema>;

/** `data` of {@link BRANCHES_DOCUMENT}; no nodes for a repository that is not there. */
export const branchSearchSchema = object({
  repository: object({ refs: object({ nodes: listOrNull(foundBranchSchema) }) }),
});
export type GithubBranchSearch = z.output<typeof branchSearchSchema>;

/** A pull request of the REST API. */
export const restPullRequestSchema = object({ number, html_url: text });
export type GithubRestPullRequest = z.output<typeof restPullRequestSchema>;

/** `GET /repos/{owner}/{repo}/pulls`. */
export const restPullRequestsSchema = list(restPullRequestSchema);

/** A refusal by the REST API: the details of a failed validation are texts or objects. */
export const refusalSchema = object({
  message: text,
  errors: list(z.union([requiredText, z.object({ message: text, field: text, code: text })])),
});
export type GithubRefusal = z.output<typeof refusalSchema>;

/** A query with what it needs to survive a weak or an old server. */
export interface GithubDocument<Data> {
  text: string;
  /** The same without fields that older Enterprise Servers lack. */
  fallbackText: string;
  /** Variables that say how much is read at once. */
  pageSizes: Readonly<Record<string, number>>;
  /** Of the `data` in the response. */
  schema: z.ZodType<Data>;
}

/**
 * Open pull requests of the token's user with everything their classification needs: 2 of 5,000 points an hour
 * (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api).
 *
 * Comments of review threads stay out: they would multiply the cost by eight. `last` because threads that are still
 * open are usually the newest ones.
 */
export const PULL_REQUESTS_DOCUMENT: GithubDocument<GithubPullRequests> = {
  text: pullRequests('latestOpinionatedReviews(last: 10) { nodes { state submittedAt } }'),
  fallbackText: pullRequests(),
  pageSizes: { prs: 50, threads: THREADS },
  schema: pullRequestsSchema,
};

/**
 * Recent repositories, the files that tell whether they have agent instructions, and assigned issues: 1 point.
 *
 * Issues come from the search, because `viewer.issues` lists what the user has written, not what is assigned.
 */
export const REPOSITORIES_AND_ISSUES_DOCUMENT: GithubDocument<GithubRepositoriesAndIssues> = {
  text: repositoriesAndIssues('isMirror'),
  fallbackText: repositoriesAndIssues(),
  pageSizes: { repos: 100, probe: 10, issues: 50 },
  schema: repositoriesAndIssuesSchema,
};

/** `mergeable` of pull requests for which it was UNKNOWN: reading it makes GitHub compute it. */
export const RECHECK_MERGEABLE_DOCUMENT = unchanging(
  `query RecheckMergeable($ids: [ID!]!) {
  nodes(ids: $ids) { ... on PullRequest { id mergeable } }
}`,
  mergeabilitySchema,
);

/** Branches whose name contains a text, at most 100; the REST list cannot be searched. */
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

/** Whom the token belongs to. */
export const VIEWER_DOCUMENT = unchanging('query Viewer { viewer { login } }', viewerSchema);

function unchanging<Data>(query: string, schema: z.ZodType<Data>): GithubDocument<Data> {
  return { text: query, fallbackText: query, pageSizes: {}, schema };
}

function pullRequests(reviews = ''): string {
  return `query SuggestedTaskPRs($prs: Int = 50, $threads: Int = ${THREADS}) {
  rateLimit { cost nodeCount remaining resetAt }
  viewer {
    login
    pullRequests(first: $prs, states: [OPEN], orderBy: {field: UPDATED_AT, direction: DESC}) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes {
        id
        number
        title
        isDraft
        updatedAt
        mergeable
        repository { nameWithOwner isArchived isDisabled pushedAt }
        commits(last: 1) { nodes { commit { oid statusCheckRollup { state } } } }
        reviewThreads(last: $threads) {
          totalCount
          nodes { isResolved isOutdated }
        }
        ${reviews}
      }
    }
  }
}`;
}

function repositoriesAndIssues(mirror = ''): string {
  return `query SuggestedTaskReposAndIssues($repos: Int = 100, $probe: Int = 10, $issues: Int = 50,
  $q: String = "is:issue is:open archived:false assignee:@me sort:updated-desc") {
  rateLimit { cost nodeCount remaining resetAt }
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
        root: object(expression: "HEAD:") { ... on Tree { entries { name type } } }
        openhands: object(expression: "HEAD:.openhands") { ... on Tree { entries { name type } } }
        microagents: object(expression: "HEAD:.openhands/microagents") { ... on Tree { entries { name type } } }
        skills: object(expression: "HEAD:.openhands/skills") { ... on Tree { entries { name type } } }
      }
    }
  }
  assigned: search(type: ISSUE, query: $q, first: $issues) {
    issueCount
    pageInfo { hasNextPage endCursor }
    nodes { __typename ... on Issue { number title updatedAt repository { nameWithOwner isArchived isDisabled pushedAt } } }
  }
}`;
}
