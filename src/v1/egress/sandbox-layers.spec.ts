import { expect, it } from '@jest/globals';
import { decideEgress } from '@slipway/egress-proxy/decision.js';
import { parseAuthority } from '@slipway/egress-proxy/target.js';
import type { EgressHostRule } from '@slipway/egress-rules/egress-rules.js';
import { withOpen } from './sandbox-layers.js';

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
  expect(decideEgress({ layers }, { target, method, path }).isAllowed).toBe(isPassing);
});
