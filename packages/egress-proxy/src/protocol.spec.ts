import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { startListening, stopServer } from '../../../test/support/start-listening.js';
import { policySchema, reportsSchema } from './protocol.js';
import { HttpServiceConnection } from './service-connection.js';

/** What the first release with a proxy says: those beside it read it as long as they may be upgraded one after the other. */
const HOST = { host: 'api.example', port: 8443, methods: ['GET'], paths: ['/v1/*'], patterns: ['/v2/*/x'] };
const INJECTION = {
  placeholder: 'placeholder-of-16',
  value: 'v',
  hosts: [{ ...HOST, http: true }],
  headers: ['authorization'],
  format: 'Bearer {}',
  query: ['key'],
  model: 'openai/m',
};
const POLICY = {
  sandbox: 's',
  phase: 'agent',
  layers: [
    { default: 'allow', allow: [{ ...HOST, isOwn: true }], deny: [{ host: 'b.example' }], yieldsOnce: true },
  ],
  injections: [INJECTION],
  networks: ['10.0.0.0/8'],
  authority: { certificate: 'c', key: 'k' },
  once: ['c.example'],
  maxAgeSeconds: 5,
};
const REQUEST = {
  at: '2026-11-30T00:00:00.000Z',
  host: 'api.example',
  port: 443,
  method: 'GET',
  path: '/',
  denied: 'method',
  rule: 'api.example',
  phase: 'agent',
  status: null,
  sentBytes: 1,
  receivedBytes: 2,
  durationMs: 3,
};
const REPORTS = { reports: [{ sandbox: 's', requests: [REQUEST] }] };

describe('the protocol between proxies and the service', () => {
  it('is read as the release before says it', () => {
    expect(policySchema.parse(POLICY)).toEqual(POLICY);
    expect(reportsSchema.parse(REPORTS)).toEqual({ reports: [{ ...REPORTS.reports[0], calls: [] }] });
  });

  it('lets a newer service say more, of which a proxy does less', () => {
    const [layer] = POLICY.layers;
    const newer = {
      ...POLICY,
      phase: 'review',
      layers: [{ ...layer, default: 'ask', allow: [{ ...HOST, countries: ['EU'] }, HOST], since: 1 }],
      injections: [{ ...INJECTION, once: true }, { ...INJECTION, hosts: [{ ...HOST, hours: 8 }] }, INJECTION],
      more: true,
    };
    expect(policySchema.parse(newer)).toEqual({
      ...POLICY,
      phase: 'setup',
      layers: [{ ...layer, default: 'deny', allow: [HOST] }],
    });
  });

  it('lets a newer proxy report more, and by reasons that the service does not know', () => {
    const requests = [{ ...REQUEST, denied: 'country', region: 'EU' }];
    expect(reportsSchema.parse({ reports: [{ sandbox: 's', requests, more: 1 }], more: 1 })).toEqual({
      reports: [{ sandbox: 's', requests: [{ ...REQUEST, denied: 'rule' }], calls: [] }],
    });
  });
});

describe('a service whose answer cannot be read', () => {
  let server: Server;
  let connection: HttpServiceConnection;

  beforeEach(async () => {
    server = createServer((_request, response) => response.end('{"layers": 1}'));
    connection = new HttpServiceConnection(new URL(`http://127.0.0.1:${await startListening(server)}`), 'k');
  });

  afterEach(async () => {
    await connection.close();
    await stopServer(server);
  });

  it('is said to be of another release', async () => {
    await expect(connection.policy('c')).rejects.toThrow(/of another release/);
    await expect(connection.once('s', 'a.example')).rejects.toThrow(/of another release/);
  });
});
