import { Injectable } from '@nestjs/common';
import type { GuardedHttpOptions, GuardedRequestInit } from '@slipway/common/http/guarded-http.client.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { ServiceHttpClient } from '../common/http/service-http.client.js';
import { type Instrument, Metrics } from '@slipway/telemetry/metrics.js';

const OUTCOMES = [
  'ok',
  'not_found',
  'unauthorized',
  'rate_limited',
  'client_error',
  'server_error',
  // The reasons of UpstreamError, without a usable response.
  'timeout',
  'network',
  'too_large',
  'refused',
  'redirect',
  'share',
  'malformed',
] as const;
type Outcome = (typeof OUTCOMES)[number];

/** Hosts that users wrote must not become labels. */
const OTHER = 'other';
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 8, 12];

/** Counts the requests to git servers and to their identity provider, by configured host. */
@Injectable()
export class ProviderMetrics {
  private readonly requests: Instrument<{ host: readonly string[]; outcome: typeof OUTCOMES }>;
  private readonly durations: Instrument<{ host: readonly string[] }>;

  constructor(
    metrics: Metrics,
    private readonly hosts: HostAllowlist,
  ) {
    const names = [...hosts.names, OTHER];
    this.requests = metrics.addCounter({
      name: 'slipway_provider_requests_total',
      help: 'Requests to git servers by their host (as the configuration names it) and by how they ended',
      labels: { host: names, outcome: OUTCOMES },
    });
    this.durations = metrics.addHistogram({
      name: 'slipway_provider_request_seconds',
      help: 'How long requests to git servers took, whatever became of them',
      labels: { host: names },
      buckets: SECONDS,
    });
  }

  async measure(address: string | URL, send: () => Promise<Response>): Promise<Response> {
    const begunAt = performance.now();
    let outcome: Outcome = 'network';
    try {
      const response = await send();
      outcome = outcomeOf(response);
      return response;
    } catch (error) {
      outcome = error instanceof UpstreamError ? error.reason : 'network';
      throw error;
    } finally {
      const host = (URL.canParse(String(address)) && this.hosts.nameOf(new URL(address))) || OTHER;
      this.requests.record({ host, outcome });
      this.durations.record({ host }, (performance.now() - begunAt) / 1000);
    }
  }
}

/** GitHub sends 403 for an exhausted limit. */
function outcomeOf({ status, headers }: Response): Outcome {
  if (status < 400) {
    return 'ok';
  }
  if (status >= 500) {
    return 'server_error';
  }
  const isExhausted = headers.get('x-ratelimit-remaining') === '0' || headers.has('retry-after');
  if (status === 429 || (status === 403 && isExhausted)) {
    return 'rate_limited';
  }
  if (status === 401 || status === 403) {
    return 'unauthorized';
  }
  return status === 404 ? 'not_found' : 'client_error';
}

/** The one client for calls to git servers and to their identity provider. */
export class GitHttpClient extends ServiceHttpClient {
  constructor(
    options: GuardedHttpOptions,
    private readonly metrics: ProviderMetrics,
  ) {
    super(options);
  }

  override async fetch(url: string | URL, init?: GuardedRequestInit): Promise<Response> {
    return this.metrics.measure(url, () => super.fetch(url, init));
  }
}
