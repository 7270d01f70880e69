import { METHODS } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { inTime, within } from '@slipway/common/async.js';
import { helloProblem, sendAlert, TlsRecords } from './client-hello.js';
import { decideEgress, decideOnce, opensTls } from './decision.js';
import { type Client, type Exchange, lastingOf, type ProxyParts } from './exchange.js';
import { IDLE_MS, pipeBothWays } from './forward.js';
import { denied } from './refusal.js';

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';
const HANDSHAKE_MS = 15_000;
/** From the beginning of one comparison to that of the next: the service counts on it where the setup of a sandbox ends. */
export const COMPARE_MS = 1_000;
const LONGEST_METHOD = 32;

interface Tunnelling {
  parts: ProxyParts;
  client: Client;
  exchange: Exchange;
  socket: Duplex;
  head: Buffer;
  /** Hands what is inside of the tunnel to the proxy's server. */
  serve: (inside: Client & { socket: Socket }) => void;
}

/** A request to open a tunnel: its TLS is opened where requests have to be seen, and passed through elsewhere. @throws RefusedError */
export async function openTunnel(tunnelling: Tunnelling): Promise<void> {
  const { exchange, socket, head } = tunnelling;
  await exchange.admit();
  if (head.length > 0) {
    socket.unshift(head);
  }
  if (opensTls(exchange.policy, exchange.asked.target)) {
    await openTls(tunnelling);
    return;
  }
  const { parts, client } = tunnelling;
  // From here on: one that sends its first byte late would begin by rules that hold no longer.
  const lasting = lastingOf(client, exchange, () => void socket.destroy());
  lasting.asked = { ...lasting.asked, isUnread: true };
  parts.lasting.add(lasting);
  try {
    await passThrough(tunnelling);
  } finally {
    parts.lasting.delete(lasting);
  }
}

async function openTls({ parts, client, exchange, socket, serve }: Tunnelling): Promise<void> {
  const { target } = exchange.asked;
  const near = plainSocket(socket);
  const secureContext = await parts.authorities.contextFor(exchange.policy.authority, target);
  near.write(ESTABLISHED);
  if (await beginsWithRequest(near)) {
    serve(insideOf(client, { socket: near, exchange, isTls: false }));
    return;
  }
  if (!(await beginsWell(near, exchange, true))) {
    return;
  }
  // What is inside has a timeout of its own; the socket outside sees none of its bytes.
  near.setTimeout(0);
  const secure = new TLSSocket(near, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
  const handshake = Promise.withResolvers<void>();
  secure
    .once('secure', handshake.resolve)
    .on('error', handshake.reject)
    .once('close', () => {
      handshake.reject(new Error('the program closed the connection'));
      near.destroy();
    });
  try {
    await inTime(HANDSHAKE_MS, handshake.promise, () => new Error('no TLS handshake in time'));
  } catch {
    // The program does not trust its own authority, or has gone, and cannot be told.
    exchange.report();
    secure.destroy();
    near.destroy();
    return;
  }
  serve(insideOf(client, { socket: secure, exchange, isTls: true }));
}

function insideOf<T extends Socket>(
  client: Client,
  { socket, exchange, isTls }: { socket: T; exchange: Exchange; isTls: boolean },
): Client & { socket: T } {
  const { asked, isAllowedOnce } = exchange;
  return {
    ...client,
    socket,
    underWay: 0,
    heads: 0,
    turn: Promise.resolve(),
    leaving: new Set(),
    inside: { target: { ...asked.target, isTls }, isAllowedOnce },
  };
}

/**
 * Node.js (`NODE_USE_ENV_PROXY`) asks for a tunnel before plain requests too. They are judged and passed on one by one, as if
 * they had come without. What begins is left in the socket.
 */
async function beginsWithRequest(socket: Socket): Promise<boolean> {
  if (socket.readableLength === 0 && !socket.readableEnded && !socket.destroyed) {
    const begun = Promise.withResolvers<void>();
    socket.once('readable', begun.resolve).once('close', begun.resolve);
    await within(HANDSHAKE_MS, begun.promise);
    socket.off('readable', begun.resolve).off('close', begun.resolve);
  }
  const chunk: unknown = socket.read();
  if (!Buffer.isBuffer(chunk)) {
    return false;
  }
  socket.unshift(chunk);
  const [method = ''] = chunk.toString('latin1', 0, LONGEST_METHOD).split(' ', 1);
  return METHODS.includes(method);
}

async function passThrough({ parts, client, exchange, socket, serve }: Tunnelling): Promise<void> {
  const { target } = exchange.asked;
  const near = plainSocket(socket);
  const far = await parts.dialer.dial(exchange.policy, target);
  const endFar = (): void => void far.destroy();
  near.once('close', endFar);
  if (near.destroyed) {
    far.destroy();
  }
  near.write(ESTABLISHED);
  const end = (): void => {
    near.destroy();
    far.destroy();
  };
  if (await beginsWithRequest(near)) {
    far.destroy();
    near.off('close', endFar);
    serve(insideOf(client, { socket: near, exchange, isTls: false }));
    return;
  }
  if (!(await beginsWell(near, exchange, false))) {
    far.destroy();
    return;
  }
  for (const each of [near, far]) {
    each.setTimeout(IDLE_MS, end);
  }
  try {
    await pipeBothWays(exchange, { near, far, fromNear: [new TlsRecords()], fromFar: [new TlsRecords()] });
  } catch {
    // Either side has gone, or carries something else than TLS.
  } finally {
    end();
    exchange.report();
  }
}

/** Where it does not, the program is told by an alert of TLS, and the service by the report. */
async function beginsWell(near: Socket, exchange: Exchange, isOpened: boolean): Promise<boolean> {
  const { target } = exchange.asked;
  const problem = await helloProblem(near, target, { isOpened });
  if (problem === null) {
    return true;
  }
  exchange.report(problem.isGone ? null : denied('protocol', target, { detail: problem.detail }));
  sendAlert(near, problem.alert);
  return false;
}

/** What takes a connection over is a socket, whatever the types say. */
export function plainSocket(socket: Duplex): Socket {
  if (!(socket instanceof Socket)) {
    throw new Error('a connection has no socket');
  }
  return socket;
}

/** Ends what is under way of sandboxes that are gone, or whose rules refuse it by now. Returns the milliseconds until the next comparison. */
export async function endForbidden({
  lasting,
  policies,
}: Pick<ProxyParts, 'lasting' | 'policies'>): Promise<number> {
  const begun = performance.now();
  const all = Array.from(lasting, async (entry) => {
    const { credential, asked, isAllowedOnce } = entry;
    const policy = await policies.policy(credential).catch((error: Error) => error);
    const isAnswered = !(policy instanceof Error);
    const decide = isAllowedOnce ? decideOnce : decideEgress;
    // A request that has become a WebSocket meanwhile has an entry of its own.
    if (lasting.has(entry) && isAnswered && (policy === null || !decide(policy, asked).isAllowed)) {
      entry.end();
    }
  });
  // What takes long to learn of one sandbox must not keep those of others going.
  await within(COMPARE_MS, Promise.all(all));
  return Math.max(0, begun + COMPARE_MS - performance.now());
}
