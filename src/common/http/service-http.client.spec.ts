import { expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { RawServer } from '../../../test/support/raw-server.js';
import { upstreamFailure } from '../../../test/support/upstream-failure.js';
import { runInRequestContext } from '@slipway/api/requests/request-context.js';
import { ServiceHttpClient } from './service-http.client.js';

it('takes connections from the share of the user who asks, until the application ends', async () => {
  const hanging: (() => void)[] = [];
  const full = Promise.withResolvers<void>();
  const server = await RawServer.start((request, response) => {
    hanging.push(() => response.end());
    if (request.url === '/alice') {
      response.end();
    } else if (hanging.length === 32) {
      full.resolve();
    }
  });
  const client = new ServiceHttpClient({
    allowlist: HostAllowlist.parse([server.origin]),
    maxResponseBytes: 100,
    timeoutMs: 60_000,
  });
  const requestOf = async (userId: string): Promise<Response> =>
    await runInRequestContext({ requestId: userId, userId }, () =>
      client.fetch(`${server.origin}/${userId}`),
    );

  const bobs = Array.from({ length: 32 }, () => requestOf('bob'));
  await full.promise;
  expect((await upstreamFailure(requestOf('bob'))).reason).toBe('share');
  expect((await requestOf('alice')).status).toBe(200);

  hanging.forEach((answer) => answer());
  await Promise.all(bobs);
  await client.onApplicationShutdown();
  expect((await upstreamFailure(requestOf('alice'))).reason).toBe('network');
  await server.close();
});
