import { z } from 'zod';
import { type Attack, held, ofService } from '../attack.js';
import { NAMES_OF_THE_MACHINE } from '../support/connecting.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { whatArrives } from '../support/idle-connections.js';

/** To each path; further ones when they are closed. */
const IDLE = 110;

/** Prints how many connections were made, and goes on. */
const KEEP_IDLE = `
import { connect } from 'node:net';
const { hosts, port, paths, most } = JSON.parse(process.argv[2]);
let made = 0;
const dial = (host, path) => {
  const socket = connect({ host, port });
  const head = 'POST ' + path + ' HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: 1000\\r\\n\\r\\n{';
  let wasMade = false;
  socket.on('connect', () => {
    if (made === 0) setTimeout(() => console.log(JSON.stringify({ made })), 3000);
    wasMade = true;
    made += 1;
    socket.write(head);
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => { if (wasMade) { setTimeout(dial, 50, host, path); } });
  socket.resume();
};
for (const host of hosts) for (const path of paths) for (let count = 0; count < most; count += 1) dial(host, path);
`;
const printed = z.object({ made: z.number() });

export const idleTools: Attack = {
  name: 'idle-tools',
  finding: 5,
  what: `A tool of Bob opens ${IDLE} connections to each path that needs no key, through every address by which its sandbox reaches the service, and sends one byte of each body.`,
  expected: ofService(held('all signed events arrive, and whoever signs in is answered as before')),
  run: (world) => world.apart({ environment: { RATE_LIMIT_PER_MINUTE: '0' } }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const alice = await EventSender.create(world, world.alice.client);
  await alice.automation({ max_runs_per_day: 1 });
  const { pathname } = new URL(alice.url);
  const targets = {
    hosts: NAMES_OF_THE_MACHINE,
    port: Number(new URL(world.url).port),
    paths: [pathname, '/auth/key', '/oauth/device/token'],
    most: IDLE,
  };
  const tool = await world.bob.nodeInBackground(KEEP_IDLE, [JSON.stringify(targets)]);
  let output = '';
  while (!output.includes('made')) {
    output = await tool.output();
  }
  const { made } = printed.parse(JSON.parse(output));
  const arrived = await whatArrives(world, alice);
  await tool.stop();
  return { held: made > 0 && arrived.held, seen: `${made} connections were made; ${arrived.seen}` };
}
