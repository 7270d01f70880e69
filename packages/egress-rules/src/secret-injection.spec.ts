import { describe, expect, it } from '@jest/globals';
import {
  changedInjection,
  injectionProblems,
  parseSecretHost,
  type SecretInjection,
} from './secret-injection.js';

const STORED: SecretInjection = {
  hosts: ['api.example.com'],
  inject: { header: 'X-Key', format: '{}' },
  methods: ['GET'],
  paths: ['/v1/*'],
  placeholder: 'placeholder-of-16',
};

it.each([
  ['API.Example.com.', { host: 'api.example.com' }],
  ['bücher.example:8443', { host: 'xn--bcher-kva.example', port: 8443 }],
  ['http://api.example.com', { host: 'api.example.com', http: true }],
  ['HTTP://api.example.com:8080', { host: 'api.example.com', port: 8080, http: true }],
  ['https://api.example.com', { host: 'api.example.com' }],
  ['*.example.com', { host: '*.example.com' }],
  ['[2001:DB8::1]:8443', { host: '2001:db8::1', port: 8443 }],
  ['192.0.2.7', { host: '192.0.2.7' }],
  ...[
    '',
    '*',
    '*.com',
    'https://api.example.com/v1',
    'a b',
    'user@example.com',
    'example.com:0',
    'ftp://x.example',
  ].map((text) => [text, null] as const),
])('takes a host as egress rules do, with its scheme: %s', (text, expected) => {
  expect(parseSecretHost(text)).toEqual(expected);
});

describe('a rule', () => {
  it.each([
    ['nothing', {}, STORED],
    [
      'hosts',
      { hosts: ['Http://B.example:81', 'b.example', 'B.EXAMPLE.'] },
      { ...STORED, hosts: ['http://b.example:81', 'b.example'] },
    ],
    ['an address in brackets', { hosts: ['[2001:DB8::1]:80'] }, { ...STORED, hosts: ['[2001:db8::1]:80'] }],
    ['no hosts', { hosts: [] }, null],
    ['null for hosts', { hosts: null, inject: { header: 'X' } }, null],
    [
      'another header',
      { inject: { header: 'Authorization' } },
      { ...STORED, inject: { header: 'Authorization', format: 'Bearer {}' } },
    ],
    [
      'null for the rest',
      { inject: null, methods: null, paths: null, placeholder: null },
      { hosts: STORED.hosts, inject: { header: 'Authorization', format: 'Bearer {}' } },
    ],
  ])('changes by %s', (_, change, expected) => {
    expect(changedInjection(STORED, change)).toEqual(expected);
  });

  it('is none without hosts', () => {
    expect(changedInjection(null, { inject: { header: 'X-Key' }, methods: ['GET'] })).toBeNull();
  });
});

describe('a secret with hosts', () => {
  const PEM = '-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\n';
  const problems = (name: string, value: string, injection: SecretInjection | null = STORED): string[] =>
    injectionProblems({ name, value }, injection).map(({ loc, type }) => `${loc.join('.')} ${type}`);

  it.each([
    ['AWS_SECRET_ACCESS_KEY', 'wJalrXUtnFEMI/K7MDENG'],
    ['PROD_AWS_SECRET_ACCESS_KEY', 'wJalrXUtnFEMI/K7MDENG'],
    ['aws_secret_access_key', 'wJalrXUtnFEMI/K7MDENG'],
    ['GOOGLE', JSON.stringify({ type: 'service_account', private_key: PEM }, null, 2)],
    ['GOOGLE', '{"type": "service_account"}'],
    ['DEPLOY_KEY', PEM],
    ['DEPLOY_KEY', PEM.replace('EC ', '')],
    ['DEPLOY_KEY', PEM.replace('EC ', 'OPENSSH ')],
    ['DEPLOY_KEY', PEM.replaceAll('\n', String.raw`\n`)],
  ])('may not sign instead of being sent: %s', (name, value) => {
    expect(problems(name, value)).toEqual(['body.hosts not_injectable']);
    expect(problems(name, value, null)).toEqual([]);
  });

  it.each([
    ['is empty', ''],
    ['has two lines', 'one\ntwo'],
    ['ends in a line break', 'token\n'],
    ['has characters that no header has', 'tokän-€'],
    ['is longer than a header', 'x'.repeat(8_193)],
  ])('may not have a value that %s', (_, value) => {
    expect(problems('TOKEN', value)).toEqual(['body.value value_error']);
  });

  it.each(['placeholder-of-16', 'older-of', 'xx-placeholder-of-16-xx'])(
    'may not have a placeholder that is within its value, or has it within: %s',
    (value) => {
      expect(problems('TOKEN', value)).toEqual(['body.placeholder value_error']);
    },
  );

  it('may not have a rule that proxies would be told at length: hosts with each of its paths', () => {
    const paths = Array.from({ length: 20 }, (_, index) => `/${String(index).repeat(100)}`);
    const hosts = Array.from({ length: 20 }, (_, index) => `api-${index}.example.com`);
    expect(problems('TOKEN', 'a-token', { ...STORED, hosts: hosts.slice(0, 2), paths })).toEqual([]);
    expect(problems('TOKEN', 'a-token', { ...STORED, hosts, paths })).toEqual(['body.hosts value_error']);
  });

  it('may be any token', () => {
    expect(problems('AWS_ACCESS_KEY_ID', 'AKIAIOSFODNN7EXAMPLE')).toEqual([]);
  });
});
