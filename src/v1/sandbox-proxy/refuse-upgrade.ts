import type { Duplex } from 'node:stream';

/** Answers the request for a WebSocket with a plain HTTP status (RFC 6455, 4.2.2). */
export function refuseUpgrade(socket: Duplex, status: string): void {
  if (socket.writable) {
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
}
