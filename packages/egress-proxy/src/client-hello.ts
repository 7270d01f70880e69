import type { Socket } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { getExtensionData, readTlsClientHello, type TlsClientHelloMessage } from 'read-tls-client-hello';
import { inTime } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { parseAuthority, type Target } from './target.js';

const HELLO_MS = 15_000;
const SERVER_NAME = 0;
const ALPN = 16;
const ECH = 0xfe0d;
const ECH_OUTER = 0;
/** HPKE suites and the length of an X25519 share: what programs send in an extension that means nothing (RFC 9849, 6.2). */
const GREASE_KDF = 1;
const GREASE_AEADS = [1, 2, 3];
const GREASE_SHARE = 32;

/** Alerts of TLS, which clients show in words. */
const ALERTS = { accessDenied: 49, noApplicationProtocol: 120 } as const;

interface HelloProblem {
  detail: string;
  alert: number;
  /** The program has gone before it sent anything. */
  isGone: boolean;
}

/**
 * Looks at the first bytes of a tunnel, which stay in the socket for its next reader: at most one record of TLS, within a
 * deadline. Null: it may go on.
 */
export async function helloProblem(
  socket: Socket,
  target: Target,
  { isOpened }: { isOpened: boolean },
): Promise<HelloProblem | null> {
  let hello: TlsClientHelloMessage;
  // The library waits for more bytes after an end, too.
  const ended = Promise.withResolvers<never>();
  let isGone = false;
  const end = (): void => {
    isGone = true;
    ended.reject(new Error('it ended'));
  };
  socket.once('end', end).once('close', end);
  if (socket.destroyed || socket.readableEnded) {
    end();
  }
  try {
    const reading = Promise.race([readTlsClientHello(socket), ended.promise]);
    hello = await inTime(HELLO_MS, reading, () => new Error('it did not begin in time'));
  } catch (error) {
    return {
      detail: `the tunnel does not begin with TLS (${errorMessage(error)})`,
      alert: ALERTS.accessDenied,
      isGone,
    };
  } finally {
    socket.off('end', end).off('close', end);
  }
  const problem = judgeHello(hello, target, { isOpened });
  return problem && { ...problem, isGone: false };
}

/** Whether a tunnel to a host may begin like this. */
function judgeHello(
  hello: TlsClientHelloMessage,
  target: Target,
  { isOpened }: { isOpened: boolean },
): Omit<HelloProblem, 'isGone'> | null {
  const names = hello.extensions.filter(({ id }) => id === SERVER_NAME);
  const name = names.length === 1 ? getExtensionData(hello, SERVER_NAME)?.serverName : undefined;
  const sni =
    name === undefined || name.includes(':') ? null : parseAuthority(name, { isTls: true, defaultPort: 443 });
  // An address is never sent as the name of a server.
  if (names.length === 0 ? !target.isAddress : sni?.host !== target.host) {
    const given = names.length === 0 ? 'names no server (SNI)' : 'names another server (SNI) than CONNECT';
    return { detail: `its TLS ${given}`, alert: ALERTS.accessDenied };
  }
  if (!isOpened && hello.extensions.some(({ id, data }) => id === ECH && !mayBeGrease(data))) {
    return { detail: 'its TLS hides the name of the server (ECH)', alert: ALERTS.accessDenied };
  }
  const offered = getExtensionData(hello, ALPN)?.protocols;
  if (isOpened && offered && !offered.includes('http/1.1')) {
    return {
      detail: `it speaks ${offered.join(', ')} alone, and HTTP/1.1 is spoken where TLS is opened`,
      alert: ALERTS.noApplicationProtocol,
    };
  }
  return null;
}

/**
 * A meaningless extension is made to look like a real one. What tells them apart is the name outside: the real name of the server beside
 * a meaningless one, which `judgeHello` has compared, and that of a front otherwise.
 */
function mayBeGrease(data: Record<string, unknown> | null): boolean {
  return (
    data !== null &&
    data['type'] === ECH_OUTER &&
    data['kdfId'] === GREASE_KDF &&
    GREASE_AEADS.some((id) => id === data['aeadId']) &&
    data['encLength'] === GREASE_SHARE
  );
}

/** Ends a tunnel with a fatal alert, before there is any encryption. */
export function sendAlert(socket: Socket, alert: number): void {
  socket.end(Buffer.from([21, 3, 3, 0, 2, 2, alert]), () => socket.destroy());
}

const HEADER = 5;
const FIRST_TYPE = 20;
const LAST_TYPE = 24;
/** RFC 5246, 6.2.3. */
const MAX_RECORD = 16_384 + 2_048;

/** Passes records of TLS on as they are, and fails where something else comes. */
export class TlsRecords extends Transform {
  private readonly header = Buffer.alloc(HEADER);
  private headerLength = 0;
  private left = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    callback(this.isTls(chunk) ? null : new Error('the tunnel carries something else than TLS'), chunk);
  }

  private isTls(chunk: Buffer): boolean {
    let at = 0;
    while (at < chunk.length) {
      if (this.left > 0) {
        const skipped = Math.min(this.left, chunk.length - at);
        this.left -= skipped;
        at += skipped;
        continue;
      }
      const copied = chunk.copy(this.header, this.headerLength, at, at + HEADER - this.headerLength);
      this.headerLength += copied;
      at += copied;
      if (this.headerLength === HEADER) {
        const [type = 0, major = 0] = this.header;
        this.left = this.header.readUInt16BE(3);
        this.headerLength = 0;
        if (type < FIRST_TYPE || type > LAST_TYPE || major !== 3 || this.left > MAX_RECORD) {
          return false;
        }
      }
    }
    return true;
  }
}
