import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';

/** As many as all callers without a key may have at a time, of each kind. */
const IDLE = 100;
const SENT = 40;
const EVERY_MS = 100;
const SETTLE_MS = 1_000;
const SIGN_IN_MS = 2_000;

/** Requests that say how long their body is, and never send more than its first byte. */
const PATHS = [
  ['/oauth/device/token', 1_000],
  ['/auth/key', 1_000],
  ['/api/automation/v1/events/ORG/github', 1_000_000],
] as const;

export const idleStrangers: Attack = {
  name: 'idle-strangers',
  finding: 5,
  what: `Somebody without a key opens ${IDLE * PATHS.length} connections, sends a head and one byte over each, and opens those again that are closed.`,
  expected: ofService(held('all signed events arrive, and whoever signs in is answered as before')),
  timeoutMs: 120_000,
  run: (world) => world.apart({ environment: { RATE_LIMIT_PER_MINUTE: '0' } }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const alice = await EventSender.create(world, world.alice.client);
  await alice.automation({ max_runs_per_day: 1 });
  const org = new URL(alice.url).pathname.split('/').at(-2) ?? '';
  const idle = new IdleConnections(world);
  PATHS.forEach(([path, length]) => idle.open(path.replace('ORG', org), length));
  await wait(SETTLE_MS);
  let [events, signIns, slow] = [0, 0, 0];
  for (let count = 0; count < SENT; count += 1) {
    const event = await alice.deliver({ number: count });
    await event.arrayBuffer();
    events += event.status === 202 ? 1 : 0;
    const began = performance.now();
    signIns += (await signsIn(world)) ? 1 : 0;
    slow += performance.now() - began > SIGN_IN_MS ? 1 : 0;
    await wait(EVERY_MS);
  }
  const opened = idle.close();
  return {
    held: events === SENT && signIns === SENT && slow === 0,
    seen: `${events} of ${SENT} signed events arrived, ${signIns} of ${SENT} sign-ins, ${slow} of them after more than ${SIGN_IN_MS / 1000} s; ${opened} idle connections were opened`,
  };
}

async function signsIn({ url, alice }: HostileWorld): Promise<boolean> {
  try {
    const response = await fetch(`${url}/auth/key`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key: alice.client.key }),
      // What takes longer is counted as lost.
      signal: AbortSignal.timeout(2 * SIGN_IN_MS),
    });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** Keeps its number of connections to each path, which cost the attacker a few bytes every few seconds. */
class IdleConnections {
  private readonly sockets = new Set<Socket>();
  private opened = 0;
  private isClosed = false;

  constructor(private readonly world: HostileWorld) {}

  open(path: string, length: number): void {
    for (let count = 0; count < IDLE; count += 1) {
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
