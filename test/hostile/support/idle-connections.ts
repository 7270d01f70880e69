import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { EventSender } from './event-sender.js';
import type { HostileWorld } from './hostile-world.js';

/** A client that waits longer is kept out; a busy machine takes seconds for what a quiet one does within milliseconds. */
const GIVEN_UP_MS = 30_000;

const SENT = 40;
const EVERY_MS = 100;

/** How many signed events of Alice's repository arrive, and how often she can sign in: all, or it has not held. */
export async function whatArrives(
  world: HostileWorld,
  alice: EventSender,
): Promise<{ held: boolean; seen: string }> {
  let [events, signIns] = [0, 0];
  for (let count = 0; count < SENT; count += 1) {
    const event = await alice.deliver({ number: count });
    await event.arrayBuffer();
    events += event.status === 202 ? 1 : 0;
    signIns += (await signsIn(world)) ? 1 : 0;
    await wait(EVERY_MS);
  }
  return {
    held: events === SENT && signIns === SENT,
    seen: `${events} of ${SENT} signed events arrived, ${signIns} of ${SENT} sign-ins`,
  };
}

/** Whether Alice can sign in, within the patience of a person. */
export async function signsIn({ url, alice }: HostileWorld): Promise<boolean> {
  try {
    const response = await fetch(`${url}/auth/key`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key: alice.client.key }),
      signal: AbortSignal.timeout(GIVEN_UP_MS),
    });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** Keeps its number of connections to each path, which cost the attacker a few bytes every few seconds. */
export class IdleConnections {
  private readonly sockets = new Set<Socket>();
  private opened = 0;
  private isClosed = false;

  constructor(private readonly world: HostileWorld) {}

  open(path: string, length: number, most: number): void {
    for (let count = 0; count < most; count += 1) {
      this.dial(path, length);
    }
  }

  /** @returns how many there were */
  close(): number {
    this.isClosed = true;
    this.sockets.forEach((socket) => socket.destroy());
    return this.opened;
  }

  private dial(path: string, length: number): void {
    const { hostname, port, host } = new URL(this.world.url);
    const socket = connect(Number(port), hostname);
    this.opened += 1;
    this.sockets.add(socket);
    const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${length}\r\n\r\n{`);
    socket.on('error', () => socket.destroy());
    socket.resume();
    socket.on('close', () => {
      this.sockets.delete(socket);
      if (!this.isClosed) {
        this.dial(path, length);
      }
    });
  }
}
