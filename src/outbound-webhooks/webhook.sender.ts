import { Injectable } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { ServiceHttpClient } from '../common/http/service-http.client.js';
import { retryAfter } from '@slipway/common/http/response-body.js';
import { UpstreamError, type UpstreamReason } from '@slipway/common/http/upstream-error.js';
import { AppConfig, proxyOf } from '../config/app-config.js';
import type { AttemptResult, ClaimedDelivery } from './webhook-delivery.repository.js';
import { deliveryBody } from './webhook-event.js';
import { signatureHeaders } from '@slipway/common/webhook-signature.js';

export const ATTEMPT_TIMEOUT_MS = 10_000;
/** More than the worker has under way: users share the origin of a chat service, and must not wait for each other. */
const MAX_CONNECTIONS_PER_ORIGIN = 1_000;
/** The rest of a body is not read. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const GONE = 410;

/** Seconds from each attempt to the next one: about two days in all. */
const RETRY_SECONDS = [5, 30, 120, 600, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000];
/** Random share of the pause, so that receivers do not get everything at the same moment after an outage. */
const JITTER = 0.1;

/** What servers may ask for with `Retry-After`. */
const MAX_WAIT_SECONDS = 3_600;

const FAILURES: Partial<Record<UpstreamReason, string>> = {
  timeout: `The server did not answer within ${ATTEMPT_TIMEOUT_MS / 1000} seconds.`,
  refused: 'This address may not be called: it is not public, and the operator does not allow it.',
  share: 'There are too many other deliveries to this server at the moment.',
  malformed: 'The response is malformed.',
};

/** Reaches public addresses, and those that the operator allows. */
export class WebhookHttpClient extends ServiceHttpClient {}

/** Hosts that endpoints may name, besides public ones where no list is configured. */
export function webhookHosts({ outbound }: AppConfig): string[] | null {
  return outbound.webhookAllowlist ?? outbound.allowlist;
}

export function createWebhookHttpClient(config: AppConfig): WebhookHttpClient {
  return new WebhookHttpClient({
    allowlist: HostAllowlist.parse(webhookHosts(config) ?? []),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    connectionsPerOrigin: MAX_CONNECTIONS_PER_ORIGIN,
    proxy: proxyOf(config.outbound),
  });
}

@Injectable()
export class OutboundWebhookSender {
  constructor(private readonly http: WebhookHttpClient) {}

  /**
   * Makes one attempt. Failures of the receiver are results; `gone`: it wants no more deliveries.
   * @throws the signal's reason
   */
  async attempt(
    { id, eventType, data, createdAt, attempts, userId, url }: ClaimedDelivery,
    secrets: readonly string[],
    at: Date,
    signal?: AbortSignal,
  ): Promise<AttemptResult & { gone: boolean }> {
    const body = deliveryBody(id, { type: eventType, data }, createdAt);
    const since = performance.now();
    const { response, error } = await this.post(
      { userId, url },
      {
        ...signatureHeaders(secrets, { id, at, body }),
        'content-type': 'application/json',
        'user-agent': 'Slipway',
      },
      body,
      signal,
    );
    const durationMs = Math.round(performance.now() - since);
    const gone = response?.status === GONE;
    const wait = response && retryAfter(response.headers, at.getTime());
    const nextAttemptAt = error === null || gone ? null : nextAttempt(attempts, at, { wait: wait ?? 0 });
    const failed = nextAttemptAt === null ? 'failed' : 'pending';
    return {
      status: error === null ? 'delivered' : failed,
      nextAttemptAt,
      responseStatus: response?.status ?? null,
      error,
      durationMs,
      gone,
    };
  }

  private async post(
    { userId, url }: Pick<ClaimedDelivery, 'userId' | 'url'>,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal | undefined,
  ): Promise<{ response: Response | null; error: string | null }> {
    try {
      const response = await this.http.fetch(url, {
        method: 'POST',
        headers,
        body,
        holder: userId,
        statusOnly: true,
        ...(signal && { signal }),
      });
      return { response, error: response.ok ? null : `The server answered with status ${response.status}.` };
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof UpstreamError)) {
        throw error;
      }
      return { response: null, error: FAILURES[error.reason] ?? unreachable(error) };
    }
  }
}

/** Includes the code of the failure, such as ENOTFOUND or CERT_HAS_EXPIRED. */
function unreachable({ cause }: UpstreamError): string {
  return `The server cannot be reached${cause === undefined ? '' : `: ${errorMessage(cause)}`}.`;
}

/** When to attempt a delivery again, after `wait` seconds where the server asks for more; null after the last attempt. */
export function nextAttempt(
  attempts: number,
  now: Date,
  { wait = 0, random = Math.random() }: { wait?: number; random?: number } = {},
): Date | null {
  const seconds = RETRY_SECONDS[attempts - 1];
  if (seconds === undefined) {
    return null;
  }
  const pause = Math.max(seconds, Math.min(wait, MAX_WAIT_SECONDS));
  return new Date(now.getTime() + Math.round(pause * 1000 * (1 + JITTER * random)));
}
