/** HTTP client for the servers of models: reaches public addresses, and those that the operator opens to agents. */
export class ModelHttpClient extends ServiceHttpClient {}

/** @returns the client for the configured proxy and hosts */
export function createModelHttpClient(
  { outbound, sandboxes }: AppConfig,
  timeoutMs = TIMEOUT_MS,
): ModelHttpClient {
  const opened = sandboxes.networkAllow.flatMap((entry) => {
    const destination = parseDestination(entry);
    return destination?.kind === 'host' && destination.port !== null
      ? [`http://${entry}`, `https://${entry}`]
      : [];
  });
  return new ModelHttpClient({
    allowlist: HostAllowlist.parse([...(outbound.allowlist ?? []), ...opened]),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    timeoutMs,
    proxy: proxyOf(outbound),
  });
}
