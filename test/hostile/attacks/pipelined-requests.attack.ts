import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const HOLD_MS = 55_000;
/** More than fits into the buffers of the machine. */
const OUTPUT_BYTES = 8 * 1024 * 1024;
const SMALL = 1_100;
const ADDING = 8;
const CROWD = 50;
const BEFORE_CROWD_MS = 5_000;
const ADD_EVERY_MS = 20;
const NOTICE_MS = 500;

function requests({ url }: HostileWorld, path: string, count: number): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n\r\n`.repeat(count);
}

/** A connection that never reads. */
function dial({ url }: HostileWorld): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.pause();
  socket.on('error', () => socket.destroy());
  return socket;
}

/** Adds a request now and then, so that the connection is never idle. */
async function add(world: HostileWorld, socket: Socket, large: string, until: number): Promise<void> {
  socket.write(large);
  while (performance.now() < until && !socket.destroyed) {
    socket.write(requests(world, '/server_info', 1));
    await wait(ADD_EVERY_MS);
  }
}

export const pipelinedRequests: Attack = {
  name: 'pipelined-requests',
  finding: 1,
  timed: true,
  what: 'Somebody without a key pipelines thousands of requests over connections that are never read, and adds more all the time.',
  expected: { process: held('others are answered as before, memory stays, and the connections are closed') },
  run: async (world) => {
    // It is made once, by the first who asks for it.
    const { byteLength } = await (await fetch(`${world.url}/openapi.json`)).arrayBuffer();
    const large = requests(world, '/openapi.json', Math.ceil(OUTPUT_BYTES / byteLength));
    const vitals = Vitals.watch(world);
    const until = performance.now() + HOLD_MS;
    const first = dial(world);
    const ahead = large + requests(world, '/server_info', SMALL);
    first.write(ahead);
    const adding = Array.from({ length: ADDING }, () => dial(world));
    const added = Promise.all(adding.map((socket) => add(world, socket, large, until)));
    await wait(BEFORE_CROWD_MS);
    const crowd = Array.from({ length: CROWD }, () => dial(world));
    crowd.forEach((socket) => socket.write(ahead));
    await added;
    const state = await vitals.end(100, 250);
    const sockets = [first, ...adding, ...crowd];
    // Without reading, only the second write shows that the other end is closed: the first one is answered with a reset.
    for (let write = 0; write < 2; write += 1) {
      sockets.forEach((socket) => socket.write('\r\n'));
      await wait(NOTICE_MS);
    }
    const open = sockets.filter(({ destroyed }) => !destroyed).length;
    sockets.forEach((socket) => socket.destroy());
    return {
      held: state.held && open === 0,
      seen: `${open} of ${sockets.length} connections open after ${HOLD_MS / 1000} s; ${state.seen}`,
    };
  },
};
