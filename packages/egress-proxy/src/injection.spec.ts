import { describe, expect, it } from '@jest/globals';
import { injection, PLACEHOLDER, samplePolicy, target, VALUE } from '../test/support/sample-policy.js';
import { echoesOf, hasForeignCredential, injectCredentials } from './injection.js';
import type { EgressInjection } from './protocol.js';

const asked = { target: target('https://api.example.com'), method: 'GET', path: '/' };
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

describe('injectCredentials', () => {
  it.each<[string, string, string, Partial<EgressInjection>]>([
    ['Authorization', `Bearer ${PLACEHOLDER}`, `Bearer ${VALUE}`, {}],
    ['authorization', PLACEHOLDER, VALUE, {}],
    ['Authorization', basic(`x-access-token:${PLACEHOLDER}`), basic(`x-access-token:${VALUE}`), {}],
    ['Authorization', basic(`${PLACEHOLDER}:`), basic(`${VALUE}:`), {}],
    ['Authorization', 'Bearer own', 'Bearer own', {}],
    ['Authorization', basic('own:ÿ'), basic('own:ÿ'), {}],
    ['X-Api-Key', PLACEHOLDER, VALUE, { headers: ['x-api-key'] }],
    ['X-Other', PLACEHOLDER, PLACEHOLDER, {}],
    ['Cookie', `a=${PLACEHOLDER}`, `a=${PLACEHOLDER}`, {}],
    ['X-Api-Key', basic(PLACEHOLDER), basic(PLACEHOLDER), { headers: ['x-api-key'] }],
    [
      'Authorization',
      `Bearer ${PLACEHOLDER}`,
      `Bearer ${PLACEHOLDER}`,
      { hosts: [{ host: 'other.example.com' }] },
    ],
    ['Authorization', `Bearer ${PLACEHOLDER}`, 'Bearer $& $1', { value: '$& $1' }],
    ['Authorization', `Bearer ${PLACEHOLDER}`, `Bearer ${VALUE}`, { format: 'Bearer {}' }],
    ['Authorization', ` bearer ${PLACEHOLDER} `, ` bearer ${VALUE} `, { format: 'Bearer {}' }],
    ['Authorization', basic(`x:${PLACEHOLDER}`), basic(`x:${VALUE}`), { format: 'Bearer {}' }],
    ['Authorization', `token ${PLACEHOLDER}`, `token ${PLACEHOLDER}`, { format: 'Bearer {}' }],
    ['Authorization', PLACEHOLDER, PLACEHOLDER, { format: 'Bearer {}' }],
    ['Authorization', `Bearer ${PLACEHOLDER}x`, `Bearer ${PLACEHOLDER}x`, { format: 'Bearer {}' }],
    [
      'Authorization',
      `Bearer x, Bearer ${PLACEHOLDER}`,
      `Bearer x, Bearer ${PLACEHOLDER}`,
      { format: 'Bearer {}' },
    ],
    ['X-Key', `k="${PLACEHOLDER}"`, `k="${VALUE}"`, { headers: ['x-key'], format: 'k="{}"' }],
    ['X-Key', PLACEHOLDER, VALUE, { headers: ['x-key'], format: ' {} ' }],
    ['X-Key', `k="${PLACEHOLDER}`, `k="${PLACEHOLDER}`, { headers: ['x-key'], format: 'k="{}"' }],
    [
      'Authorization',
      'Basic MDEyMzQ1Njc4OWFiY2RlZg==',
      'Basic dGhlIHZhbHVlIQ==',
      { placeholder: 'MDEyMzQ1Njc4OWFiY2RlZg==', value: 'dGhlIHZhbHVlIQ==', format: 'Basic {}' },
    ],
  ])('%s: %s', (name, given, sent, changes) => {
    const policy = samplePolicy({ injections: [injection(changes)] });
    expect(injectCredentials(policy, asked, [[name, given]]).headers).toEqual([[name, sent]]);
  });

  it.each<[string, string]>([
    [`/${PLACEHOLDER}`, `/${PLACEHOLDER}`],
    [`/?key=${PLACEHOLDER}`, `/?key=${VALUE}`],
    [`/?a=%zz&k%65y=${PLACEHOLDER}&b=+%20`, `/?a=%zz&k%65y=${VALUE}&b=+%20`],
    [`/?other=${PLACEHOLDER}`, `/?other=${PLACEHOLDER}`],
    ['/?key=own+own', '/?key=own+own'],
  ])('%s', (path, sent) => {
    const policy = samplePolicy({ injections: [injection({ query: ['key'] })] });
    expect(injectCredentials(policy, { ...asked, path }, []).path).toBe(sent);
  });

  it.each([
    ['/octo/app.git/info/refs?service=git-upload-pack', true],
    ['/octo/app.git/info/refs?x=/../../other', true],
    ['/octo/app.git/../../octo/other.git/info/refs', false],
    ['/octo/app.git/..%2f..%2fother.git/info/refs', false],
    ['/octo/app.git/%2e%2e/other.git/info/refs', false],
    ['/octo/app.git/.%252e/other.git/info/refs', false],
    ['/octo/app.git//../other.git/info/refs', false],
    ['/octo/app.git/..;/other.git/info/refs', false],
    ['//octo/app.git/info/refs', false],
    ['/octo%2Fapp.git/info/refs', false],
    ['/octo/app.git%2Finfo/refs', false],
    ['/OCTO/app.git/info/refs', false],
    ['/octo/app.git.evil/info/refs', false],
    ['/octo/app.gitx', false],
    ['/octo/app.git', false],
    ['\\octo\\app.git\\info', false],
  ])('a repository at %s: %s', (path, isPut) => {
    const hosts = [{ host: 'api.example.com', paths: ['/octo/app.git/*', '/octo/app/*'] }];
    const policy = samplePolicy({ injections: [injection({ hosts })] });
    const { headers, used } = injectCredentials(policy, { ...asked, path }, [['Authorization', PLACEHOLDER]]);
    expect([headers[0]?.[1] === VALUE, used.length > 0]).toEqual([isPut, isPut]);
  });

  it('says how a Basic credential would come back', () => {
    const given = basic(`x:${PLACEHOLDER}`);
    const policy = samplePolicy({ injections: [injection()] });
    const { replacements } = injectCredentials(policy, asked, [['Authorization', given]]);
    expect(replacements).toEqual([{ sent: basic(`x:${VALUE}`).slice(6), shown: given.slice(6) }]);
  });
});

describe('echoesOf', () => {
  it('has the forms in which a host may repeat a value', () => {
    const policy = samplePolicy({ injections: [injection({ value: 'a"b c/d-0123456789' })] });
    expect(echoesOf(policy, asked).map(({ sent }) => sent)).toEqual([
      'a"b c/d-0123456789',
      String.raw`a\"b c/d-0123456789`,
      'a%22b%20c%2Fd-0123456789',
      Buffer.from('a"b c/d-0123456789').toString('base64'),
    ]);
  });

  it.each([
    ['another host', injection({ hosts: [{ host: 'other.example.com' }] })],
    ['a word that is everywhere', injection({ value: 'main' })],
  ])('masks nothing of %s', (_what, other) => {
    expect(echoesOf(samplePolicy({ injections: [other] }), asked)).toEqual([]);
  });
});

describe('hasForeignCredential', () => {
  const policy = samplePolicy({ injections: [injection()] });
  it.each<[boolean, string, [string, string][]]>([
    [false, '/', []],
    [false, '/?q=1', [['Accept', '*/*']]],
    [false, '/', [['Authorization', `Bearer ${PLACEHOLDER}`]]],
    [false, '/', [['Authorization', `token ${PLACEHOLDER}`]]],
    [false, '/', [['Authorization', basic(`x-access-token:${PLACEHOLDER}`)]]],
    [false, '/', [['Authorization', basic(`ada@example.com:${PLACEHOLDER}`)]]],
    [false, '/', [['Authorization', basic(`${PLACEHOLDER}:x-oauth-basic`)]]],
    [false, `/?key=${PLACEHOLDER}`, [['x-api-key', PLACEHOLDER]]],
    [true, '/', [['Authorization', 'Bearer strangers']]],
    [true, '/', [['AUTHORIZATION', `Bearer strangers ${PLACEHOLDER}`]]],
    [true, '/', [['Authorization', `Bearer ${PLACEHOLDER}, Bearer strangers`]]],
    [true, '/', [['Authorization', `Bearer ${PLACEHOLDER}x`]]],
    [true, '/', [['Authorization', basic(`${PLACEHOLDER}:strangers`)]]],
    [true, '/', [['Authorization', basic(`ghp_${'a'.repeat(36)}:${PLACEHOLDER}`)]]],
    [true, '/', [['Authorization', basic('ada:strangers')]]],
    [true, '/', [['Authorization', 'Digest username="ada"']]],
    [true, '/', [['X-API-Key', 'strangers']]],
    [true, '/', [['api-key', 'strangers']]],
    [true, '/', [['x-goog-api-key', 'strangers']]],
    [true, '/', [['PRIVATE-TOKEN', 'strangers']]],
    [true, '/', [['X_Api_Key', 'strangers']]],
    [true, '/', [['Sec-WebSocket-Protocol', 'realtime, openai-insecure-api-key.strangers']]],
    [false, '/', [['Sec-WebSocket-Protocol', `realtime, openai-insecure-api-key.${PLACEHOLDER}`]]],
    [true, '/?a=b;key=strangers', []],
    [true, '/?key=strangers', []],
    [true, '/?oauth_token=strangers', []],
    [true, '/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=strangers', []],
    [true, '/?a=b&%6Bey=strangers', []],
    [true, '/', [['Authorization', 'Bearer ghp_0000placeholderOfAnotherSandbox00000000']]],
  ])('%s: %s %j', (isForeign, path, headers) => {
    expect(hasForeignCredential(policy, path, headers)).toBe(isForeign);
  });
});
