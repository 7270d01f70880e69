import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { jsonAt, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import type { TransformStreamDefaultController, Transformer } from 'node:stream/web';
import { boundedText } from '../../clipped-text.js';
import { type RepairedMessage, repairedMessages } from './server-answers.js';

export type CheckUrl = (url: URL) => Promise<string | null>;

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 307, 308];
const MAX_QUOTE = 300;
const TOO_LARGE = 'it sent an answer that is too large';

type Id = string | number;

export class RefusedMessageError extends Error {
  readonly status: number;
  /** Code of the error, if the answer is a message. */
  readonly code: number | null;

  constructor(status: number, text: string) {
    super(`it answered ${status}${text.trim() === '' ? '' : `: ${text.slice(0, MAX_QUOTE).trim()}`}`);
    this.name = 'RefusedMessageError';
    this.status = status;
    this.code = jsonNumber(parseJson(text), 'error', 'code');
  }
}

interface RemoteFetchOptions {
  checkUrl: CheckUrl;
  isAlwaysInSession: boolean;
  /** The server has forgotten the session, and so did nothing with the request. */
  onSessionLost: () => void;
  /** The answer to a request has ended without a response to it, for a reason in words for the model. */
  onUnanswered: (reason: string) => void;
}

/**
 * The `fetch` of a connection to a tool server: checks addresses, follows redirects within an origin with method and
 * body, bounds and repairs answers, and reports what the client's transport keeps to itself.
 */
export function remoteFetch(
  options: RemoteFetchOptions,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  return async (address, init) => {
    const url = new URL(address);
    const response = await fetchWithinOrigin(url, init, options.checkUrl);
    if (!response.ok) {
      return await refused(response, init, options);
    }
    const asked = requestId(init);
    if (/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) {
      const { body, status, headers } = response;
      const repairing = new TransformStream(new RepairedEvents(asked, options.onUnanswered));
      return new Response(body?.pipeThrough(repairing) ?? null, { status, headers });
    }
    return asked === null || response.status === 202 || response.status === 204
      ? response
      : await answered(response, asked);
  };
}

/** @throws Error when an address may not be called, or a redirect is not followed */
async function fetchWithinOrigin(
  start: URL,
  init: RequestInit | undefined,
  checkUrl: CheckUrl,
): Promise<Response> {
  let url = start;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const refusal = await checkUrl(url);
    if (refusal !== null) {
      throw new Error(refusal);
    }
    const response = await fetch(url, { ...init, redirect: 'manual' });
    const location = REDIRECTS.includes(response.status) ? response.headers.get('location') : null;
    const target = location === null ? null : URL.parse(location, url.href);
    if (target === null) {
      return response;
    }
    await response.body?.cancel();
    if (target.origin !== start.origin) {
      throw new Error(`it redirects to ${target.origin}, and redirects to another origin are not followed`);
    }
    url = target;
  }
  throw new Error('it redirects too often');
}

/** Older servers answer 400 to a session that they do not know. */
async function refused(
  response: Response,
  init: RequestInit | undefined,
  { isAlwaysInSession, onSessionLost }: RemoteFetchOptions,
): Promise<Response> {
  const { status, statusText, headers } = response;
  const body = await boundedText(response, MAX_MESSAGE_BYTES, TOO_LARGE);
  const text = body.trim() === '' ? (headers.get('www-authenticate') ?? '') : body;
  const isInSession = isAlwaysInSession ? isPost(init) : new Headers(init?.headers).has('mcp-session-id');
  if (isInSession && (status === 404 || (status === 400 && /session/i.test(text.slice(0, MAX_QUOTE))))) {
    onSessionLost();
  }
  // The client would report only the status of a refused stream of events.
  if (isPost(init) || status === 401 || status === 403) {
    throw new RefusedMessageError(status, text);
  }
  return new Response(status === 304 ? null : text.slice(0, MAX_QUOTE), { status, statusText, headers });
}

async function answered(response: Response, asked: Id): Promise<Response> {
  const { status, headers } = response;
  const type = headers.get('content-type') ?? '';
  const text = await boundedText(response, MAX_MESSAGE_BYTES, TOO_LARGE);
  const messages = repairedMessages(text, asked);
  if (messages.length === 0) {
    const what = `${type.split(';', 1)[0] || 'an answer'} that is no message`;
    throw new Error(`it answered ${status} with ${what}: ${text.trim().slice(0, MAX_QUOTE) || 'nothing'}`);
  }
  if (!messages.some((message) => isResponseTo(message, asked))) {
    throw new Error(`it answered ${status} without a response to the request`);
  }
  const fields = new Headers(headers);
  fields.set('content-type', 'application/json');
  return new Response(JSON.stringify(messages), { status, headers: fields });
}

class RepairedEvents implements Transformer<Uint8Array, Uint8Array> {
  readonly #decoder = new TextDecoder();
  readonly #asked: Id | null;
  readonly #onUnanswered: RemoteFetchOptions['onUnanswered'];
  /** Whether the response has come, or may come on another connection: a stream with ids can be continued. */
  #isSettled: boolean;
  #repaired = '';
  readonly #parser = createParser({
    maxBufferSize: MAX_MESSAGE_BYTES,
    onEvent: (event) => this.#repair(event),
    onRetry: (milliseconds) => {
      this.#repaired += `retry: ${milliseconds}\n`;
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') {
        this.#end(TOO_LARGE);
        throw new Error(TOO_LARGE);
      }
    },
  });

  constructor(asked: Id | null, onUnanswered: RemoteFetchOptions['onUnanswered']) {
    this.#asked = asked;
    this.#onUnanswered = onUnanswered;
    this.#isSettled = asked === null;
  }

  transform(chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
    this.#feed(this.#decoder.decode(chunk, { stream: true }), controller);
  }

  /** Passes on the last event too, even without an empty line behind it. */
  flush(controller: TransformStreamDefaultController<Uint8Array>): void {
    this.#feed('\n\n', controller);
    this.cancel();
  }

  /** Also called when the connection breaks. */
  cancel(): void {
    this.#end('the server ended its answer without a result');
  }

  #end(reason: string): void {
    if (!this.#isSettled) {
      this.#onUnanswered(reason);
    }
  }

  #feed(text: string, controller: TransformStreamDefaultController<Uint8Array>): void {
    this.#parser.feed(text);
    if (this.#repaired !== '') {
      controller.enqueue(Buffer.from(this.#repaired));
      this.#repaired = '';
    }
  }

  #repair({ id, event, data }: EventSourceMessage): void {
    const messages = repairedMessages(data);
    this.#isSettled ||= id !== undefined || messages.some((message) => isResponseTo(message, this.#asked));
    const texts = messages.length === 0 ? [data] : messages.map((message) => JSON.stringify(message));
    const fields = [event && `event: ${event}\n`, id !== undefined && `id: ${id}\n`].filter(Boolean).join('');
    this.#repaired += texts.map((text) => `${fields}data: ${text.replaceAll('\n', '\ndata: ')}\n\n`).join('');
  }
}

function isResponseTo(message: RepairedMessage, asked: Id | null): boolean {
  return !('method' in message) && String(message.id) === String(asked);
}

function isPost(init: RequestInit | undefined): boolean {
  return init?.method === 'POST';
}

/** The id of the request in a body whose answer is awaited; null for notifications, answers and streams of announcements. */
function requestId(init: RequestInit | undefined): Id | null {
  const message = isPost(init) && typeof init?.body === 'string' ? parseJson(init.body) : null;
  const method = jsonText(message, 'method');
  const id = method === null || method === 'subscriptions/listen' ? null : jsonAt(message, 'id');
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
