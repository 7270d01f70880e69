import { describe, expect, it } from '@jest/globals';
import { allowing, denying, injection, samplePolicy, target } from '../test/support/sample-policy.js';
import { allowedOnce, type Asked, decideEgress, decideOnce, injectionsFor, opensTls } from './decision.js';
import type { EgressPolicy } from './protocol.js';

type Row = [what: string, layers: EgressPolicy['layers'], asked: string, result: string];

const API = { host: 'api.example.com' };
const A = { host: 'a.example' };
const GIT = [denying([{ ...A, paths: [], patterns: ['/*.git/info/refs?service=git-upload-pack'] }])];
const ROWS: Row[] = [
  ['without layers', [], 'any.example:8443', 'passes'],
  ['an address without layers', [], '1.2.3.4', 'passes'],
  ['a default', [allowing([])], 'any.example', 'passes'],
  ['a default, another port', [allowing([])], 'any.example:22', 'rule'],
  ['a default, an address', [allowing([])], '1.2.3.4', 'address'],
  ['a default, an address of IPv6', [allowing([])], 'http://[2606:4700::1]', 'address'],
  ['an address that a rule says', [denying([{ host: '1.2.3.4' }])], '1.2.3.4', 'passes by 1.2.3.4'],
  ['an address of IPv6 that a rule says', [denying([{ host: '[::5]' }])], '[::5]', 'passes by [::5]'],
  ['an address below a wildcard', [denying([{ host: '*.4' }])], '1.2.3.4', 'address'],
  ['a denying default', [denying([])], 'any.example', 'rule'],
  ['a name', [denying([A])], 'a.example', 'passes by a.example'],
  ['a name on port 80', [denying([A])], 'http://a.example', 'passes by a.example'],
  ['a name on another port', [denying([A])], 'a.example:8443', 'rule'],
  ['a name with its port', [denying([{ ...A, port: 1 }])], 'a.example:1', 'passes by a.example:1'],
  ['a name without its port', [denying([{ ...A, port: 8443 }])], 'a.example', 'rule'],
  ['a name below', [denying([{ host: '*.example' }])], 'b.a.example', 'passes by *.example'],
  ['the name above', [denying([{ host: '*.a.example' }])], 'a.example', 'rule'],
  ['a name that ends alike', [denying([{ host: '*.a.example' }])], 'bada.example', 'rule'],
  ['a name that goes on', [denying([A])], 'a.example.evil.net', 'rule'],
  ['deny beats allow', [denying([{ host: '*.example' }], [A])], 'a.example', 'rule by a.example'],
  ['deny on every port', [denying([{ ...A, port: 1 }], [A])], 'a.example:1', 'rule by a.example'],
  ['deny on one port', [denying([A], [{ ...A, port: 80 }])], 'a.example', 'passes by a.example'],
  ['each layer', [allowing([]), denying([])], 'any.example', 'rule'],
  ['all layers', [allowing([]), denying([A])], 'a.example', 'passes by a.example'],
  ['a method', [denying([{ ...A, methods: ['GET'] }])], 'a.example', 'passes by a.example'],
  ['another method', [denying([{ ...A, methods: ['GET'] }])], 'POST a.example', 'method by a.example'],
  ['one, and a default', [allowing([{ ...A, methods: ['GET'] }])], 'POST a.example', 'method by a.example'],
  ['a path', [denying([{ ...A, paths: ['/a/*'] }])], 'a.example/a/b?c', 'passes by a.example'],
  ['another path', [denying([{ ...A, paths: ['/a/*'] }])], 'a.example/b', 'path by a.example'],
  ['a climbing path', [denying([{ ...A, paths: ['/a/*'] }])], 'a.example/a/%2e%2e/b', 'path by a.example'],
  ['a climbing path, where no rule has paths', [denying([A])], 'a.example/a/../b', 'passes by a.example'],
  [
    'one of two entries',
    [
      denying([
        { ...A, methods: ['GET'] },
        { ...A, paths: ['/x'] },
      ]),
    ],
    'POST a.example/x',
    'passes by a.example',
  ],
  [
    'own credentials',
    [denying([{ ...A, paths: ['/a/*'], isOwn: true }])],
    'POST a.example/a/b',
    'passes by a.example, own only',
  ],
  [
    'own, another path',
    [denying([{ ...A, paths: ['/a'], isOwn: true }])],
    'a.example/b',
    'path by a.example',
  ],
  [
    'own credentials, against deny',
    [denying([{ ...A, isOwn: true }], [A])],
    'a.example',
    'rule by a.example',
  ],
  ['own, and by a rule', [denying([{ ...A, isOwn: true }, A])], 'a.example', 'passes by a.example'],
  [
    'own credentials in one of two layers',
    [denying([A]), denying([{ ...A, isOwn: true }])],
    'a.example',
    'passes by a.example, own only',
  ],
  ['a pattern', GIT, 'a.example/a.git/info/refs?service=git-upload-pack', 'passes by a.example'],
  ['another query', GIT, 'a.example/a.git/info/refs?service=git-receive-pack', 'path by a.example'],
];

/** Of `POST http://name:port/path`; a GET over TLS where neither is said. */
function requestOf(text: string): Asked {
  const [, method = 'GET', scheme = 'https://', host, path] =
    /^(?:([A-Z]+) )?(https?:\/\/)?([^/]+)(.*)$/.exec(text) ?? [];
  return { target: target(`${scheme}${host}`), method, path: path || '/' };
}

describe('decideEgress', () => {
  it.each(ROWS)('%s', (_what, layers, asked, result) => {
    const decision = decideEgress({ layers }, requestOf(asked));
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
