import { EnvHttpProxyAgent, type Dispatcher } from 'undici';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import type { OutboundConfig } from '../config/app-config.js';
import type { TelemetryConfig } from '../config/telemetry-config.js';

export type TelemetrySignal = 'traces' | 'metrics';

type CollectorAddress = Pick<TelemetryConfig, 'endpoint' | 'headers' | 'protocol' | 'timeoutMs'>;

/** The result of a request to the collector. */
export type SendOutcome =
  | {
      kind: 'taken';
      /** The message about rejected items of a partly accepted request; null: there was none. */
      answer: Uint8Array | null;
    }
  /** The same request may be accepted later. `afterMs`: the delay that the collector asks for; null: it names none. */
  | { kind: 'later'; reason: string; afterMs: number | null }
  /** The same request will be refused again. */
  | { kind: 'refused'; reason: string };

/** A valid response has a few bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;
const CONNECTIONS = 2;
/** Retryable statuses of OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#failures-1). */
const RETRYABLE: readonly number[] = [429, 502, 503, 504];
const MAX_RETRY_AFTER_SECONDS = 300;

/**
 * Sends to a collector by OTLP over HTTP. A collector can be away, slow or somebody else: requests have a deadline, no
 * redirect is followed, and of an answer only its beginning is read.
 */
export class OtlpSender {
  readonly #options: CollectorAddress;
  readonly #agent: Dispatcher;
  readonly #stopped = new AbortController();

  constructor(options: CollectorAddress, proxy: Pick<OutboundConfig, 'proxyUrl' | 'noProxy'>) {
    this.#options = options;
    this.#agent = new EnvHttpProxyAgent({
      // Never from the environment: only the validated configuration counts.
      httpProxy: '',
      httpsProxy: proxy.proxyUrl ?? '',
      noProxy: proxy.noProxy ?? '',
      connections: CONNECTIONS,
      pipelining: 1,
      allowH2: false,
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
      connect: { timeout: options.timeoutMs },
    });
  }

  async send(signal: TelemetrySignal, body: Uint8Array): Promise<SendOutcome> {
    const { endpoint, headers, protocol, timeoutMs } = this.#options;
    const url = new URL(`${endpoint}/v1/${signal}`);
    try {
      const {
        statusCode,
        headers: answered,
        body: answer,
      } = await this.#agent.request({
        origin: url.origin,
        path: url.pathname,
        method: 'POST',
        headers: {
          ...headers,
          'content-type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
          'user-agent': 'slipway',
        },
        body,
        signal: AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(timeoutMs)]),
      });
      const bytes = await beginningOf(answer);
      if (statusCode >= 200 && statusCode <= 299) {
        return { kind: 'taken', answer: bytes };
      }
      const reason = `status ${statusCode}`;
      return RETRYABLE.includes(statusCode)
        ? { kind: 'later', reason, afterMs: retryAfterMs(answered['retry-after']) }
        : { kind: 'refused', reason };
    } catch (error) {
      return { kind: 'later', reason: failureOf(error), afterMs: null };
    }
  }

  /** Ends requests in flight. */
  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#agent.destroy();
  }
}

/** Null for an answer that is too long to be one. */
async function beginningOf(body: Dispatcher.ResponseData['body']): Promise<Uint8Array | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop ends the response.
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_ANSWER_BYTES) {
      return null;
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  return typeof header === 'string' && /^\d{1,9}$/.test(header)
    ? Math.min(Number(header), MAX_RETRY_AFTER_SECONDS) * 1000
    : null;
}

function failureOf(error: unknown): string {
  return error instanceof Error && error.name === 'TimeoutError'
    ? 'no answer in time'
    : (errorCode(error) ?? errorMessage(error));
}
