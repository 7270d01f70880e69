import type { Socket } from 'node:net';

const LINGER_MS = 1000;

/** Answers the request for a WebSocket with a plain HTTP status (RFC 6455, 4.2.2), and sees that the socket goes. */
export function refuseUpgrade(socket: Socket, status: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  // Nobody else does so any more, and of a socket that nobody reads the end is not noticed.
  socket.resume();
  socket.setTimeout(LINGER_MS, () => socket.destroy());
}
