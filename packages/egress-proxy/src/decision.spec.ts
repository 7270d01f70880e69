import { describe, expect, it } from '@jest/globals';
import { allowing, denying, injection, samplePolicy, target } from '../test/support/sample-policy.js';
import { allowedOnce, decideEgress, decideOnce, injectionsFor, opensTls } from './decision.js';
import type { EgressPolicy } from './protocol.js';

type Row = [
  what: string,
  policy: Partial<EgressPolicy>,
  asked: string,
  method: string,
  path: string,
  result: string,
];

const API = { host: 'api.example.com' };
const ROWS: Row[] = [
  ['without layers', {}, 'https://any.example:8443', 'GET', '/', 'passes'],
  ['an address without layers', {}, 'https://1.2.3.4', 'GET', '/', 'passes'],
  ['a default', { layers: [allowing([])] }, 'https://any.example', 'GET', '/', 'passes'],
  ['a default, another port', { layers: [allowing([])] }, 'https://any.example:22', 'GET', '/', 'rule'],
  ['a default, an address', { layers: [allowing([])] }, 'https://1.2.3.4', 'GET', '/', 'address'],
  [
    'a default, an address of IPv6',
    { layers: [allowing([])] },
    'http://[2606:4700::1]',
    'GET',
    '/',
    'address',
  ],
  [
    'an address that a rule says',
    { layers: [denying([{ host: '1.2.3.4' }])] },
    'https://1.2.3.4',
    'GET',
    '/',
    'passes by 1.2.3.4',
  ],
  [
    'an address of IPv6 that a rule says',
    { layers: [denying([{ host: '[::5]' }])] },
    'https://[::5]',
    'GET',
    '/',
    'passes by [::5]',
  ],
  [
    'an address below a wildcard',
    { layers: [denying([{ host: '*.4' }])] },
    'https://1.2.3.4',
    'GET',
    '/',
    'address',
  ],
  ['a denying default', { layers: [denying([])] }, 'https://any.example', 'GET', '/', 'rule'],
  [
    'a name',
    { layers: [denying([API])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  [
    'a name on port 80',
    { layers: [denying([API])] },
    'http://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  [
    'a name on another port',
    { layers: [denying([API])] },
    'https://api.example.com:8443',
    'GET',
    '/',
    'rule',
  ],
  [
    'a name with its port',
    { layers: [denying([{ ...API, port: 8443 }])] },
    'https://api.example.com:8443',
    'GET',
    '/',
    'passes by api.example.com:8443',
  ],
  [
    'a name without its port',
    { layers: [denying([{ ...API, port: 8443 }])] },
    'https://api.example.com',
    'GET',
    '/',
    'rule',
  ],
  [
    'a name below',
    { layers: [denying([{ host: '*.example.com' }])] },
    'https://a.b.example.com',
    'GET',
    '/',
    'passes by *.example.com',
  ],
  [
    'the name above',
    { layers: [denying([{ host: '*.example.com' }])] },
    'https://example.com',
    'GET',
    '/',
    'rule',
  ],
  [
    'a name that ends alike',
    { layers: [denying([{ host: '*.example.com' }])] },
    'https://badexample.com',
    'GET',
    '/',
    'rule',
  ],
  [
    'a name that goes on',
    { layers: [denying([API])] },
    'https://api.example.com.evil.net',
    'GET',
    '/',
    'rule',
  ],
  [
    'deny beats allow',
    { layers: [denying([{ host: '*.example.com' }], [API])] },
    'https://api.example.com',
    'GET',
    '/',
    'rule by api.example.com',
  ],
  [
    'deny on every port',
    { layers: [denying([{ ...API, port: 8443 }], [API])] },
    'https://api.example.com:8443',
    'GET',
    '/',
    'rule by api.example.com',
  ],
  [
    'deny on one port',
    { layers: [denying([API], [{ ...API, port: 80 }])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  ['each layer', { layers: [allowing([]), denying([])] }, 'https://any.example', 'GET', '/', 'rule'],
  [
    'all layers',
    { layers: [allowing([]), denying([API])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  [
    'a method',
    { layers: [denying([{ ...API, methods: ['GET'] }])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  [
    'another method',
    { layers: [denying([{ ...API, methods: ['GET'] }])] },
    'https://api.example.com',
    'POST',
    '/',
    'method by api.example.com',
  ],
  [
    'another method, and a default',
    { layers: [allowing([{ ...API, methods: ['GET'] }])] },
    'https://api.example.com',
    'POST',
    '/',
    'method by api.example.com',
  ],
  [
    'a path',
    { layers: [denying([{ ...API, paths: ['/a/*'] }])] },
    'https://api.example.com',
    'GET',
    '/a/b?c',
    'passes by api.example.com',
  ],
  [
    'another path',
    { layers: [denying([{ ...API, paths: ['/a/*'] }])] },
    'https://api.example.com',
    'GET',
    '/b',
    'path by api.example.com',
  ],
  [
    'a path that climbs',
    { layers: [denying([{ ...API, paths: ['/a/*'] }])] },
    'https://api.example.com',
    'GET',
    '/a/%2e%2e/b',
    'path by api.example.com',
  ],
  [
    'a path that climbs, where no rule has paths',
    { layers: [denying([API])] },
    'https://api.example.com',
    'GET',
    '/a/../b',
    'passes by api.example.com',
  ],
  [
    'one of two entries',
    {
      layers: [
        denying([
          { ...API, methods: ['GET'] },
          { ...API, paths: ['/x'] },
        ]),
      ],
    },
    'https://api.example.com',
    'POST',
    '/x',
    'passes by api.example.com',
  ],
  [
    'own credentials',
    { layers: [denying([{ ...API, paths: ['/v1/*'], isOwn: true }])] },
    'https://api.example.com',
    'POST',
    '/v1/chat',
    'passes by api.example.com, own only',
  ],
  [
    'own credentials, another path',
    { layers: [denying([{ ...API, paths: ['/v1/*'], isOwn: true }])] },
    'https://api.example.com',
    'POST',
    '/v2',
    'path by api.example.com',
  ],
  [
    'own credentials, against deny',
    { layers: [denying([{ ...API, isOwn: true }], [API])] },
    'https://api.example.com',
    'GET',
    '/',
    'rule by api.example.com',
  ],
  [
    'own credentials, and by a rule',
    { layers: [denying([{ ...API, isOwn: true }, API])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com',
  ],
  [
    'own credentials in one of two layers',
    { layers: [denying([API]), denying([{ ...API, isOwn: true }])] },
    'https://api.example.com',
    'GET',
    '/',
    'passes by api.example.com, own only',
  ],
  [
    'a pattern',
    { layers: [denying([{ ...API, paths: [], patterns: ['/*.git/info/refs?service=git-upload-pack'] }])] },
    'https://api.example.com',
    'GET',
    '/a.git/info/refs?service=git-upload-pack',
    'passes by api.example.com',
  ],
  [
    'another query than that of a pattern',
    { layers: [denying([{ ...API, paths: [], patterns: ['/*.git/info/refs?service=git-upload-pack'] }])] },
    'https://api.example.com',
    'GET',
    '/a.git/info/refs?service=git-receive-pack',
    'path by api.example.com',
  ],
];

describe('decideEgress', () => {
  it.each(ROWS)('%s', (_what, policy, address, method, path, result) => {
    const decision = decideEgress(samplePolicy(policy), { target: target(address), method, path });
    const by = decision.rule === null ? '' : ` by ${decision.rule}`;
    const text = decision.isAllowed
      ? `passes${by}${decision.isOwnOnly ? ', own only' : ''}`
      : `${decision.denial}${by}`;
    expect(text).toBe(result);
  });

  it('lets a tunnel begin where some request may pass', () => {
    const policy = samplePolicy({ layers: [denying([{ ...API, methods: ['GET'], paths: ['/a'] }])] });
    expect(decideEgress(policy, { target: target('https://api.example.com') }).isAllowed).toBe(true);
    expect(decideEgress(policy, { target: target('https://other.example.com') }).isAllowed).toBe(false);
  });
});

describe('opensTls', () => {
  it.each<[string, Partial<EgressPolicy>, boolean]>([
    ['without rules', {}, false],
    ['a name', { layers: [denying([API])] }, false],
    ['methods', { layers: [denying([{ ...API, methods: ['GET'] }])] }, true],
    ['paths in one layer', { layers: [denying([API]), denying([{ ...API, paths: ['/'] }])] }, true],
    ['methods beside none', { layers: [denying([{ ...API, methods: ['GET'] }, API])] }, false],
    ['methods of another', { layers: [denying([API, { host: 'other', methods: ['GET'] }])] }, false],
    ['a credential', { injections: [injection()] }, true],
    ['a credential for one path', { injections: [injection({ hosts: [{ ...API, paths: ['/a'] }] })] }, true],
    [
      'a credential of another',
      { injections: [injection({ hosts: [{ host: 'other.example.com' }] })] },
      false,
    ],
    ['own credentials', { layers: [denying([{ ...API, isOwn: true }])] }, true],
    ['own credentials beside all', { layers: [denying([{ ...API, isOwn: true }, API])] }, false],
  ])('%s', (_what, policy, isOpened) => {
    expect(opensTls(samplePolicy(policy), target('https://api.example.com'))).toBe(isOpened);
  });
});

describe('injectionsFor', () => {
  const hosts = [{ ...API, methods: ['POST'], paths: ['/v1/*'] }];
  it.each<[string, string, string, boolean, Partial<(typeof hosts)[0]> & { http?: boolean }]>([
    ['https://api.example.com', 'POST', '/v1/x', true, {}],
    ['https://api.example.com', 'GET', '/v1/x', false, {}],
    ['https://api.example.com', 'POST', '/v1/../x', false, {}],
    ['https://api.example.com:8443', 'POST', '/v1/x', false, {}],
    ['https://other.example.com', 'POST', '/v1/x', false, {}],
    ['http://api.example.com', 'POST', '/v1/x', false, {}],
    ['http://api.example.com', 'POST', '/v1/x', true, { http: true }],
  ])('%s %s %s: %s', (address, method, path, isWanted, changes) => {
    const policy = samplePolicy({
      injections: [injection({ hosts: [{ ...hosts[0], ...API, ...changes }] })],
    });
    expect(injectionsFor(policy, { target: target(address), method, path })).toHaveLength(isWanted ? 1 : 0);
  });
});

describe('allowedOnce', () => {
  it.each([
    ['https://api.example.com', 'api.example.com'],
    ['https://api.example.com:8443', 'api.example.com:8443'],
    ['https://other.example.com:8443', null],
    ['https://[::5]:8443', '[::5]:8443'],
    ['https://api.example.com', 'api.example.com'],
    ['http://api.example.com', 'api.example.com'],
  ])('%s', (address, entry) => {
    const once = entry === null ? ['other.example.com:443'] : ['x', entry];
    expect(allowedOnce(samplePolicy({ once }), target(address))).toBe(entry);
  });

  it('says no port, and means 80 and 443', () => {
    const policy = samplePolicy({ once: ['api.example.com'] });
    expect(allowedOnce(policy, target('https://api.example.com:8443'))).toBeNull();
  });
});

describe('decideOnce', () => {
  const asked = { target: target('https://api.example.com'), method: 'POST', path: '/' };
  const yielding = { ...denying([], [{ host: 'api.example.com' }]), yieldsOnce: true };

  it.each([
    ['layers that yield', [yielding], true],
    ['a layer that does not', [yielding, denying([])], false],
    [
      'one that refuses the method',
      [yielding, denying([{ host: 'api.example.com', methods: ['GET'] }])],
      false,
    ],
    ['one that lets it', [yielding, denying([{ host: 'api.example.com', methods: ['POST'] }])], true],
  ])('%s', (_name, layers, isAllowed) => {
    expect(decideOnce(samplePolicy({ layers }), asked).isAllowed).toBe(isAllowed);
  });
});
