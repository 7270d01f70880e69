import { afterEach, describe, expect, it } from '@jest/globals';
import { FakeServer } from '../../../test/fakes/fake-server.js';
import { GuardedHttpClient } from './guarded-http.client.js';
import { HostAllowlist } from './host-allowlist.js';

describe('GuardedHttpClient', () => {
  let server: FakeServer | undefined;
  let client: GuardedHttpClient | undefined;
  afterEach(async () => {
    await client?.close();
    await server?.close();
  });
  it('works', async () => {
    server = await FakeServer.start((r) => ({ body: { path: r.path, headers: r.headers, body: r.body } }));
    client = new GuardedHttpClient({
      allowlist: HostAllowlist.parse([server.origin]),
      maxResponseBytes: 1000,
      timeoutMs: 2000,
    });
    const response = await client.fetch(`${server.origin}/x?y=1`, {
      method: 'POST',
      body: '{}',
      headers: { 'Content-Type': 'application/json' },
    });
    expect(await response.json()).toMatchObject({ path: '/x', body: '{}' });
  });
});
