import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type EgressPolicy, policySchema } from '@slipway/egress-proxy/protocol.js';
import { parseEgressHost } from './egress-rules.js';
import { modelPlaces, secretPlaces } from './credential-places.js';
import { toolCredentials } from './tool-credentials.js';
import { tellablePolicy } from './tellable-policy.js';

const LONG = Array.from({ length: 20 }, () => 'a'.repeat(20)).join('.');
const SEED = { seed: 13, numRuns: 500 };

function policy(changes: Partial<EgressPolicy>): EgressPolicy {
  return {
    sandbox: 's',
    phase: 'agent',
    layers: [],
    injections: [],
    networks: [],
    authority: { certificate: '', key: '' },
    once: [],
    maxAgeSeconds: 1,
    ...changes,
  };
}

const host = fc.oneof(
  fc.constantFrom('', LONG, `*.${LONG}`, 'a.example', '*.b.example', '2001:db8::1'),
  fc.string({ maxLength: 300 }),
);
const entry = fc.record(
  { host, port: fc.oneof(fc.integer({ min: -1, max: 70_000 }), fc.double()), methods: fc.array(fc.string()) },
  { requiredKeys: ['host'] },
);
const entries = fc.array(entry, { maxLength: 5 });
const injection = fc.record({
  placeholder: fc.string({ maxLength: 30 }),
  value: fc.string(),
  hosts: entries,
  headers: fc.array(fc.string()),
});
const address = fc.oneof(
  fc.webUrl(),
  fc.string(),
  fc
    .tuple(
      fc.constantFrom('https', 'http', 'ws', 'mcp', 'file'),
      host,
      fc.constantFrom('', ':0', ':80', ':8443'),
    )
    .map(([scheme, name, port]) => `${scheme}://${name}${port}/v1`),
);

describe('what a proxy is told', () => {
  it('is read by it, whatever hosts and credentials there are', () => {
    const layer = fc.record({
      default: fc.constantFrom('allow' as const, 'deny' as const),
      allow: entries,
      deny: entries,
    });
    const any = fc.record({ layers: fc.array(layer), injections: fc.array(injection) });
    fc.assert(
      fc.property(any, (changes) => {
        expect(policySchema.safeParse(tellablePolicy(policy(changes))).error).toBeUndefined();
      }),
      SEED,
    );
  });

  it('is read by it, whatever addresses a user has stored', () => {
    fc.assert(
      fc.property(address, host, (url, name) => {
        const hosts = modelPlaces('openai/x', url) ?? [];
        const known = { placeholder: 'p'.repeat(16), value: 'v', headers: [] };
        const tools = toolCredentials({ s: { url, headers: { authorization: 'Bearer x' } } });
        const told = policy({
          layers: [{ default: 'deny', allow: [parseEgressHost(name) ?? { host: name }], deny: [] }],
          injections: [
            { ...known, hosts },
            { ...known, hosts: secretPlaces({ hosts: [name], inject: { header: 'x', format: '{}' } }) },
            ...tools.map((tool) => ({ ...known, ...tool })),
          ],
        });
        expect(policySchema.safeParse(tellablePolicy(told)).error).toBeUndefined();
      }),
      SEED,
    );
  });

  it('keeps what it can read', () => {
    const hosts = [{ host: 'a.example', port: 8443, methods: ['GET'], http: true }];
    const good = { placeholder: 'p'.repeat(16), value: 'v', hosts, headers: ['authorization'], format: '{}' };
    const told = policy({
      layers: [
        {
          default: 'deny',
          allow: [{ host: 'a.example' }, { host: LONG }],
          deny: [{ host: 'b.example' }],
          yieldsOnce: true,
        },
      ],
      injections: [
        { ...good, hosts: [...hosts, { host: LONG }, { host: 'a.example', port: 0 }] },
        { ...good, hosts: [{ host: LONG }] },
      ],
    });
    expect(tellablePolicy(told)).toEqual({
      ...told,
      layers: [
        { default: 'deny', allow: [{ host: 'a.example' }], deny: [{ host: 'b.example' }], yieldsOnce: true },
      ],
      injections: [good],
    });
  });
});
