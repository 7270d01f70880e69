import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** Connections that a program of tests has open. */
export class HeldSockets {
  private readonly sockets = new Set<Duplex>();

  hold(socket: Duplex): void {
    this.sockets.add(socket);
    socket.on('close', () => this.sockets.delete(socket));
    // Either side may be cut at any time; 'close' follows.
    socket.on('error', () => undefined);
  }

  /** Cuts all of them. */
  cut(): void {
    this.sockets.forEach((socket) => socket.destroy());
  }
}

/** What one of them sends the other gets; they end together. */
export function joinSockets(one: Duplex, other: Duplex): void {
  one.on('close', () => other.destroy());
  other.on('close', () => one.destroy());
  one.pipe(other).pipe(one);
}

/** The first line and the headers of a response as they came. */
export function headOf({ statusCode = 502, statusMessage = '', rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1] ?? ''}`] : [],
  );
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, '', ''].join('\r\n');
}
