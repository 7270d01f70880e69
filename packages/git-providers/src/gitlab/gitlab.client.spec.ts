import { describe, expect, it } from '@jest/globals';
import { lacksDiscussionCounts, mapGraphqlErrors } from './gitlab.client.js';
import { graphqlResponseSchema } from './gitlab.schema.js';

function errorsOf(body: unknown) {
  return graphqlResponseSchema.parse(body).errors ?? [];
}

describe('mapGraphqlErrors', () => {
  it.each([
    ['Invalid token', 'unauthorized'],
    ['This endpoint has been requested too many times. Try again later. Rate limit', 'rate_limited'],
    [
      "The resource that you are attempting to access does not exist or you don't have permission to perform this action",
      'insufficient_scope',
    ],
    ['Timeout on Project.repository', 'timeout'],
    ['Request timed out. Please try a less complex query', 'timeout'],
    ['Query has complexity of 300, which exceeds max complexity of 250', 'unsupported'],
    ["Field 'rootRef' doesn't exist on type 'Repository'", 'unsupported'],
    ['Internal server error', 'unavailable'],
    [undefined, 'unavailable'],
  ])('%s: %s', (message, code) => {
    expect(mapGraphqlErrors(errorsOf({ errors: [{ message }] }), 'glpat-secret').codes()).toEqual([code]);
  });

  it('names each reason once', () => {
    const errors = [{ message: 'Timeout on A.b' }, { message: 'oops' }, { message: 'Timeout on C.d' }];
    expect(mapGraphqlErrors(errorsOf({ errors }), 'glpat-secret').codes()).toEqual([
      'timeout',
      'unavailable',
    ]);
  });

  it.each([[{ data: {} }], [{ errors: [] }], [{ errors: 'no' }], [null]])('finds none in %j', (body) => {
    expect(mapGraphqlErrors(errorsOf(body), 'glpat-secret').codes()).toEqual([]);
  });
});

describe('lacksDiscussionCounts', () => {
  it.each([
    [{ message: "Field 'resolvableDiscussionsCount' doesn't exist on type 'MergeRequest'" }, true],
    [{ message: "Field 'resolvedDiscussionsCount' doesn't exist on type 'MergeRequest'" }, true],
    [
      {
        message: 'worded in another way',
        extensions: { code: 'undefinedField', fieldName: 'resolvedDiscussionsCount' },
      },
      true,
    ],
    [{ message: "Field 'rootRef' doesn't exist on type 'Repository'" }, false],
    [{ message: 'Timeout on MergeRequest.resolvableDiscussionsCount' }, false],
  ])('%j: %s', (error, expected) => {
    expect(lacksDiscussionCounts(errorsOf({ errors: [error] }))).toBe(expected);
  });
});
