/** A query with what it needs to survive a weak or an old server. */
export interface GithubDocument {
  text: string;
  /** The same without fields that older Enterprise Servers lack. */
  fallbackText: string;
  /** Variables that say how much is read at once. */
  pageSizes: Readonly<Record<string, number>>;
}

/**
 * Open pull requests of the token's user with everything their classification needs: 2 of 5,000 points an hour
 * (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api).
 *
 * Comments of review threads stay out: they would multiply the cost by eight. `last` because threads that are
 * still open are rather the newest ones.
 */
export const PULL_REQUESTS_DOCUMENT: GithubDocument = {
  text: pullRequests('latestOpinionatedReviews(last: 10) { nodes { state submittedAt } }'),
  fallbackText: pullRequests(),
  pageSizes: { prs: 50, threads: 30 },
};

/**
 * Recent repositories, the files that tell whether they have agent instructions, and assigned issues: 1 point.
 *
 * Issues come from the search, because `viewer.issues` lists what the user has written, not what is assigned.
 */
export const REPOSITORIES_AND_ISSUES_DOCUMENT: GithubDocument = {
  text: repositoriesAndIssues('isMirror'),
  fallbackText: repositoriesAndIssues(),
  pageSizes: { repos: 100, probe: 10, issues: 50 },
};

/** `mergeable` of pull requests for which it was UNKNOWN: reading it makes GitHub compute it. */
export const RECHECK_MERGEABLE_DOCUMENT: GithubDocument = unchanging(`query RecheckMergeable($ids: [ID!]!) {
  nodes(ids: $ids) { ... on PullRequest { id mergeable } }
}`);

/** Whom the token belongs to. */
export const VIEWER_DOCUMENT: GithubDocument = unchanging('query Viewer { viewer { login } }');

function unchanging(text: string): GithubDocument {
  return { text, fallbackText: text, pageSizes: {} };
}

function pullRequests(reviews = ''): string {
  return `query SuggestedTaskPRs($prs: Int = 50, $threads: Int = 30) {
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
