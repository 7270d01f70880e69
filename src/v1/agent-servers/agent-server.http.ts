import { Injectable } from '@nestjs/common';
import type { Agent, Dispatcher, FormData } from 'undici';
import { errorMessage } from '../../common/errors/error-message.js';
import { jsonList, jsonText } from '../../common/json-access.js';

/** An agent server that runs right now, and what it wants to see. */
export interface AgentServerTarget {
  /** Without a trailing slash: `http://127.0.0.1:41234`. */
  address: string;
  sessionKey: string;
}

/** What an agent server answered instead of what was asked for. */
export class AgentServerError extends Error {
  /**
   * @param status HTTP status; null when there was no (understandable) answer at all
   * @param detail its own words, clipped; they may be shown to the conversation's owner
   */
  constructor(
    readonly status: number | null,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(
      status === null
        ? `The agent server did not answer: ${detail}`
        : `The agent server answered ${status}: ${detail}`,
      options,
    );
    this.name = 'AgentServerError';
  }
}

const DEFAULT_TIMEOUT_MS = 20_000;
/** A page of a hundred events with pictures in them is large; more than this is not a page. */
const MAX_RESPONSE_BYTES = 128 * 1024 * 1024;
const MAX_DETAIL = 500;
/** `detail` of the error about an answer that was cut off. */
export const RESPONSE_TOO_LARGE = 'its answer was too large';

interface AgentServerCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent instead of a body. */
  form?: FormData;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/**
 * Requests to agent servers. Their addresses come from backends and never from users, so the guard against private
 * addresses that other outgoing requests have would only stand in the way; redirects are not followed.
 */
@Injectable()
export class AgentServerHttp {
  private agent: Agent | null = null;

  /**
   * Sends a request and reads the JSON answer.
   *
   * @throws AgentServerError for any answer but 2xx with JSON, and for none
   */
  async json(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<unknown> {
    const answer = await this.text(target, path, call);
    try {
      return JSON.parse(answer);
    } catch (error) {
      throw new AgentServerError(null, 'its answer was not JSON', { cause: error });
    }
  }

  /**
   * Writes a file inside of the sandbox.
   *
   * @param path absolute
   * @throws AgentServerError
   */
  async upload(
    target: AgentServerTarget,
    path: string,
    content: string,
    signal?: AbortSignal,
  ): Promise<void> {
    const { FormData: Form } = await import('undici');
    const form = new Form();
    form.set('file', new Blob([content]), 'file');
    await this.text(target, '/api/file/upload', {
      method: 'POST',
      query: { path },
      form,
      ...(signal && { signal }),
    });
  }

  /**
   * Sends a request and reads the answer as text.
   *
   * @throws AgentServerError for any answer but 2xx, and for none
   */
  async text(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<string> {
    const { method = 'GET', query = {}, body, form, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = call;
    const url = new URL(`${target.address}${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        url.searchParams.set(name, String(value));
      }
    }
    const deadline = AbortSignal.timeout(timeoutMs);
    const signals = signal ? AbortSignal.any([signal, deadline]) : deadline;
    try {
      const dispatcher = await this.dispatcher();
      const response = await dispatcher.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: {
          accept: 'application/json',
          'x-session-api-key': target.sessionKey,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        body: form ?? (body === undefined ? null : JSON.stringify(body)),
        signal: signals,
      });
      const text = await readText(response.body);
      if (response.statusCode < 200 || response.statusCode > 299) {
        throw new AgentServerError(response.statusCode, failureDetail(text));
      }
      return text;
    } catch (error) {
      if (error instanceof AgentServerError) {
        throw error;
      }
      throw new AgentServerError(null, reasonOf(error), { cause: error });
    }
  }

  /** The library is loaded with the first request: the service starts without it. */
  private async dispatcher(): Promise<Agent> {
    const { Agent: Connections } = await import('undici');
    this.agent ??= new Connections({
      connections: 16,
      // Connections are kept for as long as agent servers keep theirs at least.
      keepAliveTimeout: 30_000,
      // Every call has a deadline of its own; a clone may take longer than the library would wait.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return this.agent;
  }
}

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_RESPONSE_BYTES) {
      throw new AgentServerError(null, RESPONSE_TOO_LARGE);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return 'the time was over';
  }
  return errorMessage(error).slice(0, MAX_DETAIL);
}

const NO_REASON = 'no reason given';

/**
 * An agent server's own words about a failure, clipped. The stock server's answer to a request that it does not
 * understand repeats what it was sent, which may be a key or a secret: of such an answer only places and sentences are
 * taken.
 *
 * @param text body of its answer
 */
export function failureDetail(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not every failure is JSON; then the text itself is all there is.
    return text.slice(0, MAX_DETAIL) || NO_REASON;
  }
  const detail = jsonText(parsed, 'detail') ?? jsonList(parsed, 'detail').map(problem).join('; ');
  return detail.slice(0, MAX_DETAIL) || NO_REASON;
}

function problem(value: unknown): string {
  const place = jsonList(value, 'loc').filter((part) => typeof part === 'string' || typeof part === 'number');
  return `${place.join('.') || 'request'}: ${jsonText(value, 'msg') ?? NO_REASON}`;
}
