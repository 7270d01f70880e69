import { describe, expect, it } from '@jest/globals';
import { networkPolicy } from './network-policy.js';

const SERVICE = { podSelector: { matchLabels: { app: 'slipway' } } };

describe('networkPolicy', () => {
  it('lets in the service only, and out to public addresses, name servers and what is named', () => {
    const peer = { ipBlock: { cidr: '10.0.0.5/32' } };
    const { metadata, spec } = networkPolicy({
      instanceId: 'Prod_1',
      sources: [SERVICE],
      destinations: [
        { peer, port: 3000 },
        { peer: SERVICE, port: null },
      ],
    });
    expect(metadata).toEqual({ name: 'slipway-prod-1', labels: { 'slipway.instance': 'Prod_1' } });
    expect(spec.podSelector).toEqual({ matchLabels: { 'slipway.instance': 'Prod_1' } });
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(spec.ingress).toEqual([{ from: [SERVICE] }]);
    expect(spec.egress.slice(1)).toEqual([
      {
        ports: [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      },
      { to: [peer], ports: [{ protocol: 'TCP', port: 3000 }] },
      { to: [SERVICE] },
    ]);
    const [everywhere] = spec.egress[0]?.to ?? [];
    expect(everywhere?.ipBlock?.except).toEqual(
      expect.arrayContaining([
        '10.0.0.0/8',
        '169.254.0.0/16',
        '172.16.0.0/12',
        '192.168.0.0/16',
        '127.0.0.0/8',
        // Not routed on the internet, and some machines have such an address of their own.
        '192.0.2.0/24',
        '198.51.100.0/24',
        '203.0.113.0/24',
      ]),
    );
  });

  it('lets in nobody where pods are reached through the API server', () => {
    expect(networkPolicy({ instanceId: 'x', sources: [], destinations: [] }).spec.ingress).toEqual([]);
  });
});
