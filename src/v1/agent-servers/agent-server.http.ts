import { Injectable } from '@nestjs/common';
import { Agent, FormData, request, type Dispatcher } from 'undici';
import { AgentServerError } from './agent-server.error.js';
import type { AgentServerTarget } from './agent-server-target.js';
import { failureDetail } from './failure-detail.js';

const DEFAULT_TIMEOUT_MS = 20_000;
/** A page of a hundred events with pictures in them is large; more than this is not a page. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;
const MAX_DETAIL = 500;
/** `detail` of the error about an answer that was cut off. */
export const ANSWER_TOO_LARGE = 'its answer was too large';

export interface AgentServerCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  query?: Record<string, string | number | undefined>;
  /** Sent as JSON, unless it is a form. */
  body?: unknown;
  timeoutMs?: number;
  signal?: AbortSignal;
}

/**
 * Requests to agent servers. Their addresses come from backends and never from users, so the guard against private
 * addresses that other outgoing requests have would only stand in the way; redirects are not followed.
 */
@Injectable()
export class AgentServerHttp {
  /** Connections are kept for as long as agent servers keep theirs at least. */
  private readonly dispatcher = new Agent({
    connections: 16,
    keepAliveTimeout: 30_000,
    // Every call has a deadline of its own; a clone may take longer than the library would wait.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

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
    const form = new FormData();
    form.set('file', new Blob([content]), 'file');
    await this.text(target, '/api/file/upload', {
      method: 'POST',
      query: { path },
      body: form,
      ...(signal && { signal }),
    });
  }

  /**
   * Sends a request and reads the answer as text.
   *
   * @throws AgentServerError for any answer but 2xx, and for none
   */
  async text(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<string> {
    const { method = 'GET', query = {}, body, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = call;
    const url = new URL(`${target.address}${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        url.searchParams.set(name, String(value));
      }
    }
    const deadline = AbortSignal.timeout(timeoutMs);
    const signals = signal ? AbortSignal.any([signal, deadline]) : deadline;
    try {
      const response = await request(url, {
        dispatcher: this.dispatcher,
        method,
        headers: {
          accept: 'application/json',
          'x-session-api-key': target.sessionKey,
          ...(body !== undefined && !(body instanceof FormData) && { 'content-type': 'application/json' }),
        },
        body: toBody(body),
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
}

function toBody(body: unknown): string | FormData | null {
  if (body === undefined) {
    return null;
  }
  return body instanceof FormData ? body : JSON.stringify(body);
}

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_ANSWER_BYTES) {
      throw new AgentServerError(null, ANSWER_TOO_LARGE);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError') {
    return 'the time was over';
  }
  return (error instanceof Error ? error.message : String(error)).slice(0, MAX_DETAIL);
}
