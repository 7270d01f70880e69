import { describe, expect, it } from '@jest/globals';
import { lacksFields, mapGraphqlError } from './github.errors.js';

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
    [
      'single sign-on',
      'sso_required',
      { type: 'FORBIDDEN', extensions: { saml_failure: true }, message: 'x' },
    ],
    ['a forbidden field', 'insufficient_scope', { type: 'FORBIDDEN', extensions: { saml_failure: false } }],
    ['a missing scope', 'insufficient_scope', { type: 'INSUFFICIENT_SCOPES', message: 'Your token has not' }],
    [
      'a fine-grained token',
      'insufficient_scope',
      { message: 'Resource not accessible by personal access token' },
    ],
    ['something gone', null, { type: 'NOT_FOUND', message: 'Could not resolve to a node' }],
    ['an unknown field', 'unsupported', UNKNOWN_FIELD],
    ['a query given up', 'unavailable', { message: 'Something went wrong while executing your query.' }],
    ['an unknown type', 'unavailable', { type: 'toString', message: 'x' }],
    ['no object', 'unavailable', 'broken'],
  ])('%s', (_name, code, error) => {
    expect(mapGraphqlError(error)).toBe(code);
  });
});

describe('lacksFields', () => {
  it.each([
    ['no errors', false, []],
    ['another error', false, [{ type: 'FORBIDDEN' }]],
    ['an unknown field among others', true, [{ type: 'FORBIDDEN' }, UNKNOWN_FIELD]],
    ['an unknown argument', true, [{ extensions: { code: 'argumentNotAccepted' } }]],
  ])('%s: %s', (_name, expected, errors) => {
    expect(lacksFields(errors)).toBe(expected);
  });
});
