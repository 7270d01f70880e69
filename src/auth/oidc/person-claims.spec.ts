import { describe, expect, it } from '@jest/globals';
import type { Role } from '../../config/oidc-config.js';
import { type Claims, isAccessToken, mappedRole, personOf } from './person-claims.js';
import { decideRole } from './role-decision.js';

const roleMap = new Map<string, Role>([['dev', 'member']]);
const NAMES = {
  userClaim: 'sub',
  emailClaim: 'email',
  groupsClaim: 'groups',
  githubLoginClaim: null,
  roleMap,
};
const ISSUER = 'https://sso.example.com/realms/main';
const ADA: Claims = { iss: ISSUER, sub: 'ada-1', email: 'Ada@Example.com', groups: ['dev'] };

const NO_ADDRESS = {
  email: expect.stringMatching(/^(?!0123456789abcdef)[0-9a-f]{16}@sso[.]example[.]com[.]invalid$/),
};

describe('the person of a token', () => {
  it('has the address in lower case, and the groups', () => {
    expect(personOf({ ...ADA, name: 'Ada', iat: 1_700_000_000 }, NAMES)).toEqual({
      issuer: ISSUER,
      subject: 'ada-1',
      email: 'ada@example.com',
      emailVerified: true,
      name: 'Ada',
      groups: ['dev'],
      shownGroups: ['dev'],
      githubLogin: null,
      client: null,
      issuedAt: new Date('2023-11-14T22:13:20.000Z'),
    });
  });

  it.each<[string, Claims, object]>([
    ['an address that the issuer has not verified', { email_verified: false }, { emailVerified: false }],
    ['the same as a text', { email_verified: 'false' }, { emailVerified: false }],
    ['one group as a text', { groups: 'dev' }, { groups: ['dev'] }],
    ['no groups', { groups: undefined }, { groups: [] }],
    ['groups that are no texts', { groups: [1, null, 'dev', {}] }, { groups: ['dev'] }],
    [
      'groups that Entra ID left out',
      { groups: undefined, _claim_names: { groups: 'src1' } },
      { groups: null },
    ],
    ['groups that its implicit flow left out', { groups: undefined, hasgroups: 'true' }, { groups: null }],
    [
      'no address',
      { email: undefined },
      { email: expect.stringMatching(/^[0-9a-f]{16}@sso\.example\.com\.invalid$/) },
    ],
    ['an address that is none', { email: 'ada' }, { email: expect.stringMatching(/\.invalid$/) }],
    ['an address with a line break', { email: 'a@b\nc' }, { email: expect.stringMatching(/\.invalid$/) }],
    ['a client by RFC 9068', { sub: 'ci', client_id: 'ci' }, { client: 'ci', name: 'ci' }],
    [
      'a service account of Keycloak',
      { azp: 'ci', preferred_username: 'service-account-ci' },
      { client: 'ci' },
    ],
    ['an app of Entra ID', { appid: 'ci', idtyp: 'app' }, { client: 'ci' }],
    ['a client of Auth0', { sub: 'ci@clients', azp: 'ci', gty: 'client-credentials' }, { client: 'ci' }],
    ['a person behind a client', { azp: 'console' }, { client: null }],
    [
      'a person who calls themselves like a service account',
      { azp: 'console', preferred_username: 'service-account-ci' },
      { client: null },
    ],
    [
      'a person who calls themselves like that of the client they use',
      { azp: 'console', preferred_username: 'service-account-console', sid: '1' },
      { client: null },
    ],
    ['a subject letter by letter', { sub: ' ada-1\u00a0' }, { subject: ' ada-1\u00a0' }],
    ['a name in one line', { name: 'Ada\u0000\n\u202eecila\ud800' }, { name: 'Ada\ufffd  ecila\ufffd' }],
    ['a name that would be cut in a letter', { name: `${'a'.repeat(199)}😀` }, { name: 'a'.repeat(199) }],
    ['the address of our own administrator', { email: 'Admin@Localhost' }, NO_ADDRESS],
    ['an address that we make up', { email: '0123456789abcdef@sso.example.com.invalid' }, NO_ADDRESS],
    ['an address with half a letter', { email: 'a\ud800@example.com' }, NO_ADDRESS],
  ])('knows %s', (_what, claims, expected) => {
    expect(personOf({ ...ADA, ...claims }, NAMES)).toMatchObject(expected);
  });

  it('shows some of many groups, as they can be stored, those with a role first', () => {
    const groups = [...Array.from({ length: 1_000 }, (_, index) => `g${index}`), 'dev'];
    const shown = personOf({ ...ADA, groups }, NAMES)?.shownGroups;
    const odd = personOf({ ...ADA, groups: ['a\u0000\ud800', 'x'.repeat(10_000)] }, NAMES)?.shownGroups;

    expect([shown?.length, shown?.slice(0, 2)]).toEqual([50, ['dev', 'g0']]);
    expect(odd).toEqual(['a\ufffd\ufffd', 'x'.repeat(200)]);
    expect(personOf({ ...ADA, hasgroups: true }, NAMES)?.shownGroups).toBeNull();
  });

  it.each<[string, Claims]>([
    ['no subject', { sub: undefined }],
    ['an empty subject', { sub: ' ' }],
    ['a subject that is no text', { sub: 7 }],
    ['a subject with half a letter', { sub: 'ada\ud800' }],
    ['a subject with a NUL', { sub: 'ada\0' }],
    ['a subject without end', { sub: 'a'.repeat(256) }],
    ['no issuer', { iss: undefined }],
  ])('is nobody with %s', (_what, claims) => {
    expect(personOf({ ...ADA, ...claims }, NAMES)).toBeNull();
  });

  it.each<[string, Claims]>([
    ['realm_access.roles', { realm_access: { roles: ['dev'] } }],
    ['https://slipway.example.com/groups', { 'https://slipway.example.com/groups': ['dev'] }],
  ])('reads the groups of %s', (groupsClaim, claims) => {
    expect(personOf({ ...ADA, groups: [], ...claims }, { ...NAMES, groupsClaim })?.groups).toEqual(['dev']);
  });

  it('takes no member of the prototype for a claim', () => {
    expect(personOf(ADA, { ...NAMES, groupsClaim: 'constructor.name' })?.groups).toEqual([]);
  });
});

// The claims that tell the kinds apart, as the issuers' own documents show them.
describe('a token', () => {
  const id = 'c9a1';
  const user = { sub: 'ada', iat: 1, exp: 2, email: 'ada@example.com' };

  it.each<[string, object, Claims]>([
    ['RFC 9068', { typ: 'at+jwt' }, { aud: id }],
    ['RFC 9068, with its media type', { typ: 'application/at+jwt' }, { aud: id }],
    [
      'Keycloak',
      { typ: 'JWT' },
      { typ: 'Bearer', aud: id, azp: id, sid: 's', scope: 'openid email', acr: '1' },
    ],
    ['Keycloak before version 24', { typ: 'JWT' }, { typ: 'Bearer', aud: [id], azp: id, nonce: 'n' }],
    ['a service account of Keycloak', { typ: 'JWT' }, { typ: 'Bearer', aud: id, client_id: 'ci' }],
    ['Entra ID, version 2', { typ: 'JWT' }, { aud: id, azp: id, azpacr: '1', scp: 'access', ver: '2.0' }],
    ['an app of Entra ID', { typ: 'JWT' }, { aud: id, azp: 'ci', azpacr: '1', roles: ['ops'], ver: '2.0' }],
    ['Entra ID, version 1', { typ: 'JWT' }, { aud: `api://${id}`, appid: id, appidacr: '1', scp: 'access' }],
    ['Okta', {}, { aud: 'api://default', cid: id, uid: 'u', scp: ['openid'], ver: 1, jti: 'AT.1' }],
    ['Auth0', { typ: 'JWT' }, { aud: ['https://api', 'https://x/userinfo'], azp: id, scope: 'openid' }],
    ['a client of Auth0', { typ: 'JWT' }, { aud: 'https://api', azp: 'ci', gty: 'client-credentials' }],
    ['an issuer that names the client alone', {}, { aud: 'https://api', azp: id }],
  ])('for an API is one of %s', (_issuer, header, claims) => {
    expect(isAccessToken(header, { ...user, ...claims })).toBe(true);
  });

  it.each<[string, object, Claims]>([
    ['Keycloak', { typ: 'JWT' }, { typ: 'ID', aud: id, azp: id, at_hash: 'h', sid: 's' }],
    [
      'Entra ID',
      { typ: 'JWT' },
      { aud: id, oid: 'o', tid: 't', uti: 'u', rh: 'r', roles: ['ops'], ver: '2.0' },
    ],
    ['Google', { typ: 'JWT' }, { aud: id, azp: id, at_hash: 'h', hd: 'example.com' }],
    ['Google, without a hash', { typ: 'JWT' }, { aud: id, azp: id }],
    ['Okta', {}, { aud: id, ver: 1, jti: 'ID.1', amr: ['pwd'], idp: 'i', auth_time: 1 }],
    ['Auth0', { typ: 'JWT' }, { aud: id, sid: 's', nonce: 'n' }],
    ['Cognito', {}, { aud: id, token_use: 'id' }],
    ['several clients', {}, { aud: [id, 'other'], azp: id }],
  ])('for a client is one of %s', (_issuer, header, claims) => {
    expect(isAccessToken(header, { ...user, ...claims })).toBe(false);
  });

  it('that ends sessions is for no API, whatever it says besides', () => {
    expect(isAccessToken({ typ: 'at+jwt' }, { ...user, typ: 'Bearer', events: {} })).toBe(false);
  });
});

describe('the role of a token', () => {
  const map = new Map<string, Role>([
    ['readers', 'viewer'],
    ['dev', 'member'],
    ['ops', 'admin'],
  ]);
  const none = new Map<string, Role>();

  it('is the highest of the groups', () => {
    expect([mappedRole(['readers', 'ops', 'dev'], map), mappedRole(['others'], map)]).toEqual([
      'admin',
      null,
    ]);
  });

  it.each<[string, string[] | null, string | null, boolean, Map<string, Role>, Role | 'none', string]>([
    ['mapped', ['dev'], null, false, map, 'none', 'member'],
    ['the default', ['others'], null, false, map, 'viewer', 'viewer'],
    ['refused without a default', ['others'], null, false, map, 'none', 'no_role'],
    ['taken from who left the group', ['others'], null, true, map, 'none', 'no_role'],
    ['lowered to the default', [], null, true, map, 'member', 'member'],
    ['as it was where no map says anything', [], null, true, none, 'member', 'unchanged'],
    ['the default at first sight without a map', [], null, false, none, 'member', 'member'],
    ['as it was where the groups were left out', null, null, true, map, 'member', 'unchanged'],
    [
      'refused at first sight where the groups were left out',
      null,
      null,
      false,
      map,
      'member',
      'groups_overage',
    ],
    ['never the default for a program', [], 'ci', false, map, 'member', 'no_role'],
    ['mapped for a program, too', ['ops'], 'ci', false, map, 'member', 'admin'],
    ['what an administrator gave a program', [], 'ci', true, map, 'member', 'unchanged'],
  ])('is %s', (_what, groups, client, isKnown, roleMap, defaultRole, expected) => {
    expect(decideRole({ groups, client }, isKnown, { roleMap, defaultRole })).toBe(expected);
  });
});
