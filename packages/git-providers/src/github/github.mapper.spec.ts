import { describe, expect, it } from '@jest/globals';
import {
  lacksFields,
  mapAccount,
  mapGraphqlError,
  mapMergeability,
  mapPullRequests,
  mapRepositoriesAndIssues,
  repositorySearch,
  undeterminedIds,
} from './github.mapper.js';
import {
  accountSchema,
  graphqlErrorSchema,
  mergeabilitySchema,
  pullRequestsSchema,
  repositoriesAndIssuesSchema,
} from './github.schema.js';

const REPOSITORY = {
  nameWithOwner: 'octo/app',
  isArchived: false,
  isDisabled: false,
  pushedAt: '2026-11-20T16:45:12Z',
};
const PULL_REQUEST = {
  id: 'PR_1',
  number: 1,
  title: 'A title',
  isDraft: false,
  updatedAt: '2026-11-19T00:00:00Z',
  mergeable: 'MERGEABLE',
  repository: REPOSITORY,
  commits: { nodes: [{ commit: { oid: 'c0ffee', statusCheckRollup: null } }] },
  reviewThreads: { totalCount: 0, nodes: [] },
  latestOpinionatedReviews: { nodes: [] },
};
const PROBE = { ...REPOSITORY, isEmpty: false, viewerPermission: 'WRITE', root: { entries: [] } };
const ISSUE = {
  __typename: 'Issue',
  number: 2,
  title: 'An issue',
  updatedAt: '2026-11-18T00:00:00Z',
  repository: REPOSITORY,
};

describe('mapPullRequests', () => {
  it.each([
    ['mergeability of a future kind', { mergeable: 'DANCING' }, { conflicts: 'unknown' }],
    ['checks expected', rollup('EXPECTED'), { failingChecks: 'no' }],
    ['checks not readable', { commits: null }, { failingChecks: 'unknown' }],
    ['only resolved threads', thread(true), { unresolvedComments: 'no' }],
    ['threads not readable', { reviewThreads: null }, { unresolvedComments: 'unknown' }],
    ['a review approving', reviews('APPROVED'), { unresolvedComments: 'no' }],
    ['a review dismissed', reviews('DISMISSED'), { unresolvedComments: 'no' }],
    ['reviews not known', { latestOpinionatedReviews: undefined }, { unresolvedComments: 'no' }],
    ['an archived repository', at({ isArchived: true }), { repository: { usable: false } }],
    ['a disabled repository', at({ isDisabled: true }), { repository: { usable: false } }],
    ['a repository never pushed to', at({ pushedAt: null }), { repository: { activeAt: null } }],
  ])('%s', (_name, change, expected) => {
    expect(mapNodes({ ...PULL_REQUEST, ...change }).changeRequests).toMatchObject([expected]);
  });

  it.each([
    ['null', null],
    ['text', 'broken'],
    ['no repository', { ...PULL_REQUEST, repository: null }],
    ['no repository name', { ...PULL_REQUEST, repository: {} }],
    ['no number', { ...PULL_REQUEST, number: undefined }],
    ['a number as text', { ...PULL_REQUEST, number: '1' }],
    ['no title', { ...PULL_REQUEST, title: null }],
    ['no time', { ...PULL_REQUEST, updatedAt: 'yesterday' }],
  ])('leaves out an element alone: %s', (_name, broken) => {
    const { changeRequests } = mapNodes(broken, { ...PULL_REQUEST, number: 7 });
    expect(changeRequests.map(({ number }) => number)).toEqual([7]);
  });

  it('prefers what was read again', () => {
    const data = { viewer: { pullRequests: { nodes: [{ ...PULL_REQUEST, mergeable: 'UNKNOWN' }] } } };
    const { changeRequests } = mapPullRequests(
      pullRequestsSchema.parse(data),
      new Map([['PR_1', 'CONFLICTING']]),
    );
    expect(changeRequests).toEqual([expect.objectContaining({ conflicts: 'yes' })]);
  });

  it.each([
    ['null', null],
    ['an empty object', {}],
    ['no nodes', { viewer: { pullRequests: null } }],
  ])('finds nothing in %s', (_name, data) => {
    const empty = { changeRequests: [], truncated: false };
    expect(mapPullRequests(pullRequestsSchema.parse(data), new Map())).toEqual(empty);
  });
});

describe('undeterminedIds', () => {
  it('names what GitHub had not computed', () => {
    const nodes = [
      PULL_REQUEST,
      { ...PULL_REQUEST, id: 'PR_2', mergeable: 'UNKNOWN' },
      { ...PULL_REQUEST, id: null, mergeable: 'UNKNOWN' },
      null,
    ];
    const data = pullRequestsSchema.parse({ viewer: { pullRequests: { nodes } } });
    expect(undeterminedIds(data)).toEqual(['PR_2']);
  });
});

describe('mapMergeability', () => {
  it('skips nodes that are gone', () => {
    const data = mergeabilitySchema.parse({ nodes: [null, {}, { id: 'PR_2', mergeable: 'CONFLICTING' }] });
    expect(mapMergeability(data)).toEqual(new Map([['PR_2', 'CONFLICTING']]));
  });
});

describe('mapRepositoriesAndIssues', () => {
  it.each([
    ['by a maintainer', { viewerPermission: 'MAINTAIN' }, true],
    ['by an administrator', { viewerPermission: 'ADMIN' }, true],
    ['not with triage permission', { viewerPermission: 'TRIAGE' }, false],
    ['not without permission', { viewerPermission: null }, false],
    ['not when disabled', { isDisabled: true }, false],
  ])('a repository %s', (_name, change, writable) => {
    expect(mapProbe({ ...PROBE, ...change })).toEqual([
      expect.objectContaining({ writable, hasAgentInstructions: false }),
    ]);
  });

  it('leaves out a repository whose files are not readable', () => {
    expect(mapProbe({ ...PROBE, root: null })).toEqual([]);
  });

  it('leaves out what is no issue, and broken issues alone', () => {
    const nodes = [{ ...ISSUE, __typename: 'PullRequest' }, { ...ISSUE, title: '' }, null, ISSUE];
    const data = { assigned: { nodes, pageInfo: { hasNextPage: true } } };
    const { issues, truncated } = mapRepositoriesAndIssues(repositoriesAndIssuesSchema.parse(data));
    expect([issues.map(({ number }) => number), truncated]).toEqual([[2], true]);
  });
});

describe('mapAccount', () => {
  it('translates an account', () => {
    const [same, avatarUrl] = [{ login: 'mona', company: null, email: null }, 'https://a.example/1'];
    const body = { ...same, id: 1, avatar_url: avatarUrl, name: '' };
    expect(mapAccount(accountSchema.parse(body))).toEqual({ ...same, id: '1', avatarUrl, name: null });
  });

  it.each([[null], ['text'], [{ login: 'mona' }], [{ id: 1 }]])('finds no account in %j', (body) => {
    expect(accountSchema.safeParse(body).success).toBe(false);
  });
});

function rollup(state: string) {
  return { commits: { nodes: [{ commit: { statusCheckRollup: { state } } }] } };
}

function thread(isResolved: boolean) {
  return { reviewThreads: { nodes: [{ isResolved }] } };
}

function at(repository: object) {
  return { repository: { ...REPOSITORY, ...repository } };
}

function reviews(state: string) {
  return { latestOpinionatedReviews: { nodes: [{ state }] } };
}

function mapNodes(...nodes: unknown[]) {
  return mapPullRequests(pullRequestsSchema.parse({ viewer: { pullRequests: { nodes } } }), new Map());
}

function mapProbe(probe: unknown) {
  const data = repositoriesAndIssuesSchema.parse({ viewer: { probe: { nodes: [probe] } } });
  return mapRepositoriesAndIssues(data).probedRepositories;
}

const NOT_ACCESSIBLE = 'Resource not accessible by personal access token';
const UNKNOWN_FIELD = {
  path: ['query', 'viewer', 'isMirror'],
  extensions: { code: 'undefinedField', typeName: 'Repository', fieldName: 'isMirror' },
  message: "Field 'isMirror' doesn't exist on type 'Repository'",
};

describe('mapGraphqlError', () => {
  it.each([
    ['an exhausted limit', 'rate_limited', { type: 'RATE_LIMITED', message: 'API rate limit exceeded' }],
    ['its newer name', 'rate_limited', { type: 'RATE_LIMIT', code: 'graphql_rate_limit', message: 'Wait' }],
    ['a secondary limit', 'rate_limited', { message: 'You have exceeded a secondary rate limit' }],
    ['single sign-on', 'sso_required', { type: 'FORBIDDEN', extensions: { saml_failure: true } }],
    ['a forbidden field', 'insufficient_scope', { type: 'FORBIDDEN', extensions: { saml_failure: false } }],
    ['a missing scope', 'insufficient_scope', { type: 'INSUFFICIENT_SCOPES', message: 'Your token has not' }],
    ['a fine-grained token', 'insufficient_scope', { message: NOT_ACCESSIBLE }],
    ['something gone', null, { type: 'NOT_FOUND', message: 'Could not resolve to a node' }],
    ['an unknown field', 'unsupported', UNKNOWN_FIELD],
    ['a query given up', 'unavailable', { message: 'Something went wrong while executing your query.' }],
    ['an unknown type', 'unavailable', { type: 'toString', message: 'x' }],
    ['no object', 'unavailable', 'broken'],
  ])('%s', (_name, code, error) => {
    expect(mapGraphqlError(graphqlErrorSchema.parse(error))).toBe(code);
  });
});

describe('lacksFields', () => {
  it.each([
    ['no errors', false, []],
    ['another error', false, [{ type: 'FORBIDDEN' }]],
    ['an unknown field among others', true, [{ type: 'FORBIDDEN' }, UNKNOWN_FIELD]],
    ['an unknown argument', true, [{ extensions: { code: 'argumentNotAccepted' } }]],
  ])('%s: %s', (_name, expected, errors) => {
    expect(lacksFields(errors.map((error) => graphqlErrorSchema.parse(error)))).toBe(expected);
  });
});

describe('repositorySearch', () => {
  it.each([
    ['part of a name', { owner: null, part: 'app' }, ['octo'], 'app in:name fork:true user:@me org:octo'],
    ['nothing but an owner', { owner: 'octo', part: '' }, [], 'in:name fork:true user:octo'],
    ['an owner and part of a name', { owner: 'octo', part: 'ap' }, ['x'], 'ap in:name fork:true user:octo'],
  ])('for %s', (_name, wanted, organizations, expected) => {
    expect(repositorySearch(wanted, organizations)).toBe(expected);
  });
});
