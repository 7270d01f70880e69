import { parseDestination } from '@slipway/common/http/address-rules.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { CHECK_MS } from '@slipway/models/model-check.js';
import { ServiceHttpClient } from '../common/http/service-http.client.js';
import { type AppConfig, proxyOf } from '../config/app-config.js';

/** Lists of thousands of models have a megabyte. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const LOOPBACK = ['localhost', '127.0.0.1'];

/** Why another address is not asked, and what an operator can do. */
export const OPEN_ADDRESSES =
  'this service calls public https addresses, and those that an operator opens with SANDBOX_NETWORK_ALLOW';

/** HTTP client for the servers of models: reaches public addresses, and those that the operator opens to agents. */
export class ModelHttpClient extends ServiceHttpClient {}

/** @returns the client for the configured proxy and hosts */
export function createModelHttpClient(
  { outbound, sandboxes }: AppConfig,
  timeoutMs = CHECK_MS,
): ModelHttpClient {
  const opened = sandboxes.networkAllow.flatMap((entry) => {
    const destination = parseDestination(entry);
    if (destination?.kind !== 'host' || destination.port === null) {
      return [];
    }
    const { host, port } = destination;
    // To sandboxes they are one.
    const hosts = LOOPBACK.includes(host) ? LOOPBACK.map((name) => `${name}:${port}`) : [entry];
    return hosts.flatMap((opening) => [`http://${opening}`, `https://${opening}`]);
  });
  return new ModelHttpClient({
    allowlist: HostAllowlist.parse([...(outbound.allowlist ?? []), ...opened]),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    timeoutMs,
    proxy: proxyOf(outbound),
  });
}
