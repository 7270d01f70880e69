import { Injectable } from '@nestjs/common';
import type { Dispatcher, FormData } from 'undici';
import { errorMessage } from '../../common/errors/error-message.js';
import { jsonList, jsonText, parseJson } from '../../common/json-access.js';
import { AgentServerConnections } from './agent-server.connections.js';
import type { AgentServerTarget } from './sandbox-address.js';

const DEFAULT_TIMEOUT_MS = 20_000;
/** A page of a hundred events with pictures is large; anything larger than this is not a page. */
const MAX_RESPONSE_BYTES = 128 * 1024 * 1024;
const MAX_DETAIL = 500;
const NO_REASON = 'no reason given';
/** `detail` of the error about a response that exceeded the limit. */
export const RESPONSE_TOO_LARGE = 'its response was too large';

/** An agent server refused a request, or did not answer it. */
export class AgentServerError extends Error {
  /**
   * @param status HTTP status; null when there was no (understandable) response at all
   * @param detail the server's own words, clipped; they may be shown to the conversation's owner
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
 * Sends requests to agent servers. Their addresses come from backends and never from users, so the guard against private
 * addresses that other outgoing requests have would only block them. Redirects are not followed.
 */
@Injectable()
export class AgentServerHttp {
  constructor(private readonly connections: AgentServerConnections) {}

  /**
   * Sends a request and reads the JSON response.
   *
   * @throws AgentServerError for anything but a 2xx response with JSON
   */
  async json(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<unknown> {
    const text = await this.text(target, path, call);
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new AgentServerError(null, 'its response was not JSON', { cause: error });
    }
  }

  /**
   * Writes a file inside the sandbox.
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
   * Sends a request and reads the response as text.
   *
   * @throws AgentServerError for anything but a 2xx response
   */
  async text(target: AgentServerTarget, path: string, call: AgentServerCall = {}): Promise<string> {
    const { method = 'GET', query = {}, body, form, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = call;
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) {
        parameters.set(name, String(value));
      }
    }
    const deadline = AbortSignal.timeout(timeoutMs);
    const signals = signal ? AbortSignal.any([signal, deadline]) : deadline;
    try {
      const { pool, origin } = await this.connections.dispatcher(target);
      const response = await pool.request({
        origin,
        path: parameters.size === 0 ? path : `${path}?${parameters.toString()}`,
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
    return 'the request timed out';
  }
  return errorMessage(error).slice(0, MAX_DETAIL);
}

/**
 * An agent server's own words about a failure, clipped. The stock server repeats a request that it does not understand,
 * which may contain a key or a secret, so only locations and messages are taken from such a response.
 *
 * @param text body of the response
 */
export function failureDetail(text: string): string {
  const parsed = parseJson(text);
  if (parsed === undefined) {
    // Not every failure is JSON; then the text is the only detail.
    return text.slice(0, MAX_DETAIL) || NO_REASON;
  }
  const detail = jsonText(parsed, 'detail') ?? jsonList(parsed, 'detail').map(describeProblem).join('; ');
  return detail.slice(0, MAX_DETAIL) || NO_REASON;
}

function describeProblem(problem: unknown): string {
  const location = jsonList(problem, 'loc').filter(
    (part) => typeof part === 'string' || typeof part === 'number',
  );
  return `${location.join('.') || 'request'}: ${jsonText(problem, 'msg') ?? NO_REASON}`;
}
