import {
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
  type ClientRequest,
} from 'node:http';
import type { Duplex, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import { errorCode } from '@slipway/common/errors/error-message.js';
import type { Shares } from './shares.js';
import { hostUnreachable } from './dialer.js';
import { EchoMask, EchoMaskStream } from './echo-mask.js';
import { type Client, type Exchange, lastingOf, type ProxyParts } from './exchange.js';
import { echoesOf, hasForeignCredential, type HeaderLines, injectCredentials } from './injection.js';
import { answeredHeaders, hasBody, headerLines, headerProblem, sentHeaders } from './message-headers.js';
import { AskedModelReader, isEventStream, isModelCall, ModelUsageReader } from './model-calls/model-usage.js';
import { denied, RefusedError } from './refusal.js';
import { shownTarget } from './target.js';
import type { UpstreamRequest } from './upstream.js';
import { type HeldBody, UsageEventFilter } from './model-calls/usage-request.js';

/** Between two bytes of a request, a response or a socket: models think for minutes. */
export const IDLE_MS = 15 * 60_000;
export const MAX_HEAD_BYTES = 64 * 1024;
/** 8 MiB, the most that RFC 9659 has servers send; it is taken for each answer. */
const ZSTD_WINDOW_BITS = 23;
/** By their names in `Content-Encoding`. */
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_BITS } }),
};
/** A session that a host begins for a value would be good for paths that the value does not go to. */
const SESSION_HEADERS = ['set-cookie', 'set-cookie2'];
const RETRIED = new Set(['GET', 'HEAD', 'OPTIONS']);

/** What is needed to pass one request on. */
export interface Forwarding {
  parts: ProxyParts;
  client: Client;
  exchange: Exchange;
  request: IncomingMessage;
  response: ServerResponse;
  /** The socket behind a request to upgrade, and what it has sent already. */
  upgrade: { socket: Duplex; head: Buffer } | null;
}

interface Judged extends Forwarding {
  /** The request calls a model, whose answer says what it costs. */
  call: { model: string | null; asked: AskedModelReader } | null;
  /** Null: it goes on as it comes. */
  body: HeldBody | null;
  headers: HeaderLines;
}

/** What keeps values out of an answer. */
interface Guard {
  mask: EchoMask;
  /** Headers that do not go back. */
  kept: readonly string[];
}

/** Judges a request, puts credentials in, sends it to its host, and streams the answer back. @throws RefusedError */
export async function forwardRequest(forwarding: Forwarding): Promise<void> {
  const { client, exchange, request, upgrade } = forwarding;
  const { policy, asked } = exchange;
  const { target, path = '/', method = 'GET' } = asked;
  const problem = upgradeProblem(forwarding) ?? headerProblem(request, target);
  if (problem !== null) {
    throw denied('protocol', target, { detail: problem });
  }
  const { inside } = client;
  const { isOwnOnly } = await exchange.admit(inside?.isAllowedOnce);
  if (inside !== null && !inside.target.isTls) {
    // Of plain requests one is allowed, however many come in its tunnel.
    inside.isAllowedOnce = false;
  }
  const given = headerLines(request);
  if (isOwnOnly && hasForeignCredential(policy, path, given)) {
    throw denied('credential', target);
  }
  const echoes = echoesOf(policy, asked);
  const isCall = isModelCall(method, path);
  const headers = sentHeaders(request, {
    target,
    isRead: echoes.length > 0 || isCall,
    isUpgrade: upgrade !== null,
    isOwnOnly,
  });
  const sent = injectCredentials(policy, { target, path, method }, headers);
  const guard = {
    mask: new EchoMask([...echoes, ...sent.replacements]),
    kept: sent.used.length > 0 ? SESSION_HEADERS : [],
  };
  const options: UpstreamRequest = {
    target,
    policy,
    agent: client.agent,
    host: target.host,
    port: target.port,
    method,
    path: sent.path,
    timeout: IDLE_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
  };
  const [key] = sent.used.filter(({ model }) => model !== undefined);
  // Without a value it costs the user nothing.
  const call =
    isCall && sent.used.length > 0 ? { model: key?.model ?? null, asked: new AskedModelReader() } : null;
  const body = call && (await hold(forwarding));
  try {
    await send({ ...forwarding, call, body, headers: sent.headers }, options, guard);
  } finally {
    body?.drop();
  }
}

/** What may have to ask for usage is read whole before it goes on. */
async function hold({ parts, client, exchange, request }: Forwarding): Promise<HeldBody | null> {
  const { target, path = '/' } = exchange.asked;
  const gone = Promise.withResolvers<null>();
  const leave = (): void => gone.reject(new Error('the program in the sandbox has gone'));
  const lasting = lastingOf(client, exchange, leave);
  client.leaving.add(leave);
  parts.lasting.add(lasting);
  gone.promise.catch(() => undefined);
  try {
    const { sandbox } = exchange.policy;
    return await parts.usage.hold({ sandbox, place: shownTarget(target), path }, request, gone.promise);
  } catch (error) {
    throw hostUnreachable(target, error);
  } finally {
    client.leaving.delete(leave);
    parts.lasting.delete(lasting);
  }
}

/** A body behind it, or another protocol, would reach the host as something that was never judged. */
function upgradeProblem({ request, upgrade }: Forwarding): string | null {
  if (upgrade === null) {
    return null;
  }
  const isPlain = request.headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(request);
  return isPlain ? null : 'it asks for another protocol than WebSocket, or has a body';
}

async function send(forwarding: Judged, options: UpstreamRequest, guard: Guard): Promise<void> {
  const { parts, client, exchange, request, body, headers } = forwarding;
  const upstream = begin({ ...options, headers: flat(body?.headersFor(headers) ?? headers) }, exchange);
  const answered = Promise.withResolvers<IncomingMessage | null>();
  upstream
    .on('error', answered.reject)
    .once('response', answered.resolve)
    .once('timeout', () => upstream.destroy(new Error('no byte for a long time')))
    .once('upgrade', (answer: IncomingMessage, socket: Duplex, head: Buffer) => {
      exchange.status = answer.statusCode ?? 101;
      // The joined sockets last by themselves.
      parts.lasting.delete(lasting);
      void joinSockets(forwarding, { answer, socket, head }, guard).then(
        () => answered.resolve(null),
        answered.reject,
      );
    });
  const leave = (): void => {
    const gone = new Error('the program in the sandbox has gone');
    // A request that waits for its connection emits nothing when it is destroyed.
    answered.reject(gone);
    upstream.destroy(gone);
  };
  // The response of a pipelined request does not close with its connection.
  client.leaving.add(leave);
  const lasting = lastingOf(client, exchange, leave);
  parts.lasting.add(lasting);
  if (body === null) {
    request.on('data', (chunk: Buffer) => {
      exchange.sentBytes += chunk.length;
      forwarding.call?.asked.push(chunk);
    });
    request.pipe(upstream);
  } else {
    exchange.sentBytes = body.given.length;
    forwarding.call?.asked.push(body.given);
    body.sendTo(upstream);
  }
  try {
    const answer = await answered.promise;
    if (answer !== null && body?.isRefusedBy(answer) === true) {
      answer.destroy();
      client.leaving.delete(leave);
      await send(forwarding, options, guard);
      return;
    }
    if (answer !== null) {
      await sendBack(forwarding, answer, guard);
    }
  } catch (error) {
    if (isStale(upstream, request, error)) {
      client.leaving.delete(leave);
      await send(forwarding, options, guard);
      return;
    }
    throw hostUnreachable(options.target, error);
  } finally {
    client.leaving.delete(leave);
    parts.lasting.delete(lasting);
    if (!upstream.writableFinished) {
      upstream.destroy();
    }
    // A program that still sends a body has to be able to read the answer.
    request.unpipe(upstream).resume();
  }
}

function begin(options: UpstreamRequest, exchange: Exchange): ClientRequest {
  try {
    return httpRequest(options);
  } catch (error) {
    if (/^ERR_(INVALID_CHAR|UNESCAPED_CHARACTERS|INVALID_HTTP_TOKEN)$/.test(errorCode(error) ?? '')) {
      throw denied('protocol', exchange.asked.target, {
        detail: 'its path or a header has characters that are not allowed',
      });
    }
    throw error;
  }
}

/** Whether a kept connection was closed by the host at the moment when it was used again, and nothing was lost. */
function isStale(upstream: ClientRequest, request: IncomingMessage, error: unknown): boolean {
  return (
    upstream.reusedSocket &&
    ['ECONNRESET', 'EPIPE'].includes(errorCode(error) ?? '') &&
    RETRIED.has(request.method ?? '') &&
    !hasBody(request)
  );
}

async function sendBack(
  { parts, exchange, request, response, call, body }: Judged,
  answer: IncomingMessage,
  { mask, kept }: Guard,
): Promise<void> {
  const status = answer.statusCode ?? 502;
  const isEmpty = request.method === 'HEAD' || status === 204 || status === 304;
  const decoder =
    (mask.isEmpty && call === null) || isEmpty ? null : decoderOf(answer, exchange, parts.unpacking);
  const filter = body?.isAsking === true && isEventStream(answer) ? new UsageEventFilter() : null;
  const without = decoder
    ? ['content-encoding', 'content-length']
    : filter === null && (mask.keepsLength || isEmpty)
      ? []
      : ['content-length'];
  exchange.status = status;
  answer.on('data', ({ length }: Buffer) => {
    exchange.receivedBytes += length;
  });
  const reader = call && new ModelUsageReader(isEventStream(answer));
  const steps = [
    ...(decoder ? [decoder] : []),
    ...(filter ? [filter] : []),
    ...(mask.isEmpty || isEmpty ? [] : [new EchoMaskStream(mask)]),
  ];
  try {
    response.sendDate = false;
    response.writeHead(status, reasonOf(answer, mask), maskedHeaders(answer, mask, [...without, ...kept]));
    // A head that waits for the first byte of its body would keep a client from what comes later.
    response.flushHeaders();
    (decoder ?? answer).on('data', (chunk: Buffer) => reader?.push(chunk));
    await pipeline([answer, ...steps, response]);
  } finally {
    decoder?.destroy();
    // What a program does not wait for has its price, too.
    const usage = reader?.end();
    if (call && usage) {
      exchange.reportCall({ model: call.model, asked: call.asked.model }, usage);
    }
  }
}

/** Null where the body is as it was asked for: not compressed. @throws RefusedError where it cannot be read */
function decoderOf(
  answer: IncomingMessage,
  { asked, policy: { sandbox } }: Exchange,
  unpacking: Shares,
): Transform | null {
  const encoding = answer.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding === 'identity' || encoding === '') {
    return null;
  }
  const make =
    Object.hasOwn(DECODERS, encoding) && answer.statusCode !== 206 ? DECODERS[encoding] : undefined;
  if (make === undefined) {
    answer.destroy();
    throw new RefusedError(
      null,
      502,
      `Slipway's egress proxy cannot read an answer of ${shownTarget(asked.target)} that is compressed by "${encoding}".`,
    );
  }
  if (!unpacking.take(sandbox)) {
    answer.destroy();
    throw new RefusedError(
      null,
      503,
      `This sandbox has ${unpacking.max} answers under way that have to be unpacked, the most that its share allows.`,
    );
  }
  return make().once('close', () => unpacking.release(sandbox));
}

function maskedHeaders(answer: IncomingMessage, mask: EchoMask, without: readonly string[]): string[] {
  return flat(answeredHeaders(answer, without).map(([name, value]) => [name, mask.text(value)]));
}

function reasonOf({ statusMessage = '' }: IncomingMessage, mask: EchoMask): string {
  return mask.text(statusMessage).replaceAll(/[^\t -~]/g, '');
}

/** Joins a WebSocket of the sandbox to that of the host, until one of them ends. */
async function joinSockets(
  { parts, client, exchange, upgrade }: Forwarding,
  { answer, socket: far, head }: { answer: IncomingMessage; socket: Duplex; head: Buffer },
  { mask, kept }: Guard,
): Promise<void> {
  if (upgrade === null) {
    far.destroy();
    throw denied('protocol', exchange.asked.target, {
      detail: 'its host changed to a protocol that was not asked for',
    });
  }
  const { socket: near } = upgrade;
  const lines = [
    ...answeredHeaders(answer, kept),
    ['Connection', 'Upgrade'],
    ['Upgrade', 'websocket'],
  ] as const;
  const text = lines.map(([name, value]) => `${name}: ${mask.text(value)}\r\n`).join('');
  near.write(`HTTP/1.1 101 ${reasonOf(answer, mask)}\r\n${text}\r\n`, 'latin1');
  const end = (): void => {
    near.destroy();
    far.destroy();
  };
  const lasting = lastingOf(client, exchange, end);
  parts.lasting.add(lasting);
  near.unshift(upgrade.head);
  far.unshift(head);
  // Frames say how long they are, so only what is as long as before can be put in them.
  const framed = mask.ofSameLength;
  const steps = framed.isEmpty ? [] : [new EchoMaskStream(framed)];
  try {
    await pipeBothWays(exchange, { near, far, fromFar: steps });
  } finally {
    parts.lasting.delete(lasting);
    end();
  }
}

interface Ends {
  near: Duplex;
  far: Duplex;
  fromNear?: readonly Transform[];
  fromFar?: readonly Transform[];
}

/** Until both directions have ended; an error in one ends both. */
export async function pipeBothWays(
  exchange: Exchange,
  { near, far, fromNear = [], fromFar = [] }: Ends,
): Promise<void> {
  for (const each of [near, far]) {
    // Two pipelines listen to each, besides what listened before.
    each.setMaxListeners(30);
  }
  near.on('data', ({ length }: Buffer) => {
    exchange.sentBytes += length;
  });
  far.on('data', ({ length }: Buffer) => {
    exchange.receivedBytes += length;
  });
  await Promise.all([pipeline([near, ...fromNear, far]), pipeline([far, ...fromFar, near])]);
}

function flat(lines: HeaderLines): string[] {
  return lines.flatMap(([name, value]) => [name, value]);
}
