import { expect, it } from '@jest/globals';
import { decideEgress } from '@slipway/egress-proxy/decision.js';
import { parseAuthority } from '@slipway/egress-proxy/target.js';
import type { EgressHostRule } from '../../config/egress-rules.js';
import { layersWith, withOpen } from './sandbox-layers.js';

const GET = ['GET'];

it.each<[what: string, open: EgressHostRule, allow: EgressHostRule[], asked: string, isPassing: boolean]>([
  ['passes where no rule names it', { host: 'git.example' }, [], 'POST https://git.example/x', true],
  [
    'passes where a rule names it alone',
    { host: 'git.example' },
    [{ host: 'git.example' }],
    'POST https://git.example/x',
    true,
  ],
  [
    'keeps to methods',
    { host: 'git.example' },
    [{ host: 'git.example', methods: GET }],
    'POST https://git.example/x',
    false,
  ],
  [
    'passes by such methods',
    { host: 'git.example' },
    [{ host: 'git.example', methods: GET }],
    'GET https://git.example/x',
    true,
  ],
  [
    'keeps to paths',
    { host: 'git.example' },
    [{ host: 'git.example', paths: ['/a/*'] }],
    'GET https://git.example/x',
    false,
  ],
  [
    'keeps to those of a name below',
    { host: 'git.example' },
    [{ host: '*.example', methods: GET }],
    'POST https://git.example/x',
    false,
  ],
  [
    'passes by any of several rules',
    { host: 'git.example' },
    [
      { host: 'git.example', methods: GET },
      { host: 'git.example', paths: ['/p'] },
    ],
    'POST https://git.example/p',
    true,
  ],
  [
    'passes where another port has methods',
    { host: 'git.example' },
    [{ host: 'git.example', port: 443, methods: GET }],
    'POST http://git.example/x',
    true,
  ],
  [
    'keeps to those of one of two ports',
    { host: 'git.example' },
    [{ host: 'git.example', port: 443, methods: GET }],
    'POST https://git.example/x',
    false,
  ],
  [
    'keeps to those of its own port',
    { host: 'git.example', port: 8443 },
    [{ host: 'git.example', port: 8443, methods: GET }],
    'POST https://git.example:8443/x',
    false,
  ],
  [
    'passes at its own port, which rules without one are not for',
    { host: 'git.example', port: 8443 },
    [{ host: 'git.example', methods: GET }],
    'POST https://git.example:8443/x',
    true,
  ],
  [
    'keeps to those of its address',
    { host: '2001:db8::1' },
    [{ host: '2001:db8::1', methods: GET }],
    'POST https://[2001:db8::1]/x',
    false,
  ],
])('an open host %s', (_what, open, allow, asked, isPassing) => {
  const [, method = '', scheme, authority = '', path = ''] =
    /^(\w+) (https?):\/\/([^/]+)(.*)$/.exec(asked) ?? [];
  const isTls = scheme === 'https';
  const target = parseAuthority(authority, { isTls, defaultPort: isTls ? 443 : 80 });
  if (target === null) {
    throw new Error(`${asked} has no host`);
  }
  const layers = [{ default: 'deny' as const, allow: withOpen(allow, [open]), deny: [] }];
  expect(decideEgress({ layers, open: [] }, { target, method, path }).isAllowed).toBe(isPassing);
});

const OWN = [{ host: 'git.example', paths: ['/octo/app.git/*'] }];
const RULES = { default: 'deny' as const, allow: [], deny: [] };
const OF_CREDENTIAL = { host: 'git.example', isOfCredential: true as const };

it.each<[string, Parameters<typeof layersWith>, string, boolean | 'own']>([
  ['own repository', [[RULES], [OF_CREDENTIAL], OWN], '/octo/app.git/info/refs', 'own'],
  ['other repository', [[RULES], [OF_CREDENTIAL], OWN], '/eve/gist.git/info/refs', false],
  ['other repository without a token', [[RULES], [OF_CREDENTIAL], []], '/eve/gist.git/info/refs', true],
  ['other path of a tool server, too', [[RULES], [{ host: 'git.example' }], OWN], '/mcp', true],
  [
    'other repository where a rule names the host',
    [[{ ...RULES, allow: [{ host: 'git.example' }] }], [OF_CREDENTIAL], OWN],
    '/eve/gist.git/info/refs',
    true,
  ],
  [
    'own repository beyond the paths of a rule',
    [[{ ...RULES, allow: [{ host: '*.example', paths: ['/v1/*'] }] }], [OF_CREDENTIAL], OWN],
    '/octo/app.git/info/refs',
    false,
  ],
  [
    'own repository of a host that is denied',
    [[{ ...RULES, deny: [{ host: 'git.example' }] }], [OF_CREDENTIAL], OWN],
    '/octo/app.git/info/refs',
    false,
  ],
  [
    'own repository at a port of a host that is denied',
    [
      [{ ...RULES, deny: [{ host: 'git.example' }] }],
      [{ ...OF_CREDENTIAL, port: 8443 }],
      [{ host: 'git.example', port: 8443, paths: ['/octo/app.git/*'] }],
    ],
    '/octo/app.git/info/refs',
    false,
  ],
  [
    'files beside the host of the repository',
    [[RULES], [], [{ host: 'git.example', paths: ['/raw/octo/app/*'] }]],
    '/raw/octo/app/a',
    'own',
  ],
])('what is open of the host of a credential: %s', (_what, given, path, expected) => {
  const [place] = given[2];
  const target = { host: 'git.example', port: place?.port ?? 443, isTls: true, isAddress: false };
  const decision = decideEgress(layersWith(...given), { target, method: 'GET', path });
  expect(decision.isAllowed && decision.isOpenOnly ? 'own' : decision.isAllowed).toBe(expected);
});

it('opens nothing where no rules are', () => {
  expect(layersWith([], [OF_CREDENTIAL], OWN)).toEqual({ layers: [], open: [] });
});
