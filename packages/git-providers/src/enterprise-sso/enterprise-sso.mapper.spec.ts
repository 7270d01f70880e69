import { describe, expect, it } from '@jest/globals';
import {
  isRefreshToken,
  mapKeycloakError,
  parseGitServerToken,
  parseKeycloakTokens,
} from './enterprise-sso.mapper.js';

const FIVE_MINUTES = 300_000;

function jwt(claims: object): string {
  return `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`;
}

describe('isRefreshToken', () => {
  it.each([
    ['an access token', jwt({ typ: 'Bearer' }), false],
    ['a refresh token', jwt({ typ: 'Refresh' }), true],
    ['an offline token', jwt({ typ: 'Offline' }), true],
    ['a token without a kind', jwt({}), false],
    ['an opaque value', 'not-a-jwt', false],
    ['a payload that is no JSON', 'x.%%%.y', false],
    ['nothing', '', false],
  ])('%s', (_, token, expected) => {
    expect(isRefreshToken(token)).toBe(expected);
  });
});

describe('parseGitServerToken', () => {
  it.each([
    ['{"access_token":"t"}', { token: 't', keepMs: FIVE_MINUTES }],
    ['{"access_token":"t","expires_in":7200}', { token: 't', keepMs: FIVE_MINUTES }],
    ['{"access_token":"t","expires_in":100}', { token: 't', keepMs: 40_000 }],
    ['{"access_token":"t","expires_in":59}', { token: 't', keepMs: 0 }],
    ['{"access_token":"t","expires_in":"100"}', { token: 't', keepMs: 40_000 }],
    ['access_token=t&scope=repo&token_type=bearer', { token: 't', keepMs: FIVE_MINUTES }],
    ['access_token=t%2Fu&expires_in=100\n', { token: 't/u', keepMs: 40_000 }],
    ['{}', null],
    ['null', null],
    ['', null],
    ['error=bad_refresh_token', null],
    ['<html>sign in</html>', null],
    ['{"access_token":"a\\r\\nb"}', null],
  ])('%s', (text, expected) => {
    expect(parseGitServerToken(text)).toEqual(expected);
  });
});

describe('parseKeycloakTokens', () => {
  it.each([
    ['{"access_token":"a","refresh_token":"r"}', { accessToken: 'a', refreshToken: 'r' }],
    ['{"access_token":"a"}', { accessToken: 'a', refreshToken: null }],
    ['{"refresh_token":"r"}', null],
    ['access_token=a', null],
  ])('%s', (text, expected) => {
    expect(parseKeycloakTokens(text)).toEqual(expected);
  });
});

/** As version 1 of the broker says it, and as version 2 does. */
const message = (errorMessage: string): string => JSON.stringify({ errorMessage });
const error = (code: string, error_description?: string): string =>
  JSON.stringify({ error: code, error_description });

describe('mapKeycloakError', () => {
  it.each([
    [400, message('Identity Provider [git] does not support this operation.'), 'unsupported'],
    [400, error('invalid_request', 'Identity Brokering API feature not enabled'), 'unsupported'],
    [400, message('User [1] is not associated with identity provider [git].'), 'not_linked'],
    [400, error('invalid_request', 'User not associated to identity provider'), 'not_linked'],
    [404, message('No token stored for user [1]'), 'not_linked'],
    [400, message('Invalid token.'), 'unauthorized'],
    [400, error('invalid_token', 'Invalid token'), 'unauthorized'],
    [400, error('invalid_grant', 'Token is not active'), 'unauthorized'],
    [400, error('invalid_request', 'Failed to retrieve token from identity provider'), 'reauth_required'],
    [400, error('invalid_request', 'Invalid identity provider'), 'unavailable'],
    [401, '', 'unauthorized'],
    [401, error('invalid_client'), 'unavailable'],
    [401, error('unauthorized_client'), 'unavailable'],
    [403, error('unauthorized_client'), 'reauth_required'],
    [403, error('invalid_client', 'Client not allowed to retrieve token'), 'unavailable'],
    [403, message('Client [c] not authorized to retrieve tokens'), 'reauth_required'],
    [403, message('Realm has not migrated to support the broker token exchange service'), 'unsupported'],
    [404, error('Realm does not exist'), 'unavailable'],
    [404, error('Unable to find matching target resource method'), 'unavailable'],
    [429, '', 'rate_limited'],
    [502, message('Unable to refresh token'), 'reauth_required'],
    [502, error('Could not obtain token from identity provider.'), 'unavailable'],
    [500, 'does not support this operation', 'unavailable'],
    [502, '<html>', 'unavailable'],
  ])('%i %s: %s', (status, text, expected) => {
    expect(mapKeycloakError(status, text)).toBe(expected);
  });
});
