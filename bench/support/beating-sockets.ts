import { once } from 'node:events';
import { WebSocket } from 'ws';

/**
 * WebSockets for events of commands, of which there are none: nothing but our own frames is on them.
 *
 * @param address of an agent server
 */
export async function openSockets(
  address: string,
  key: string,
  count: number,
): Promise<[WebSocket, ...WebSocket[]]> {
  const open = async (): Promise<WebSocket> => {
    const headers = { 'x-session-api-key': key };
    const socket = new WebSocket(`${address}/sockets/bash-events`, { headers, perMessageDeflate: false });
    await once(socket, 'open');
    return socket;
  };
  return [await open(), ...(await Promise.all(Array.from({ length: count - 1 }, open)))];
}

export /** There and back: the other end responds to the frame by itself. */
async function beat(socket: WebSocket): Promise<void> {
  const answered = once(socket, 'pong');
  socket.ping('beat');
  await answered;
}

/** Frames there and back, one at a time on each of the sockets. */
export async function beatsPerSecond(sockets: readonly WebSocket[], seconds: number): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() - startedAt < seconds * 1000) {
        await beat(socket);
        count += 1;
      }
    }),
  );
  return count / ((performance.now() - startedAt) / 1000);
}
