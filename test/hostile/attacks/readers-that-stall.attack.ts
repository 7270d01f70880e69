import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { shell } from '../../system/journeys/support/script.js';
import { type Attack, onOneMachine, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const STREAMS = 60;
const SOCKETS = 300;
const HOLD_MS = 3_000;

/** Sends a request, reads the status of its response, and nothing after that. */
async function open(world: HostileWorld, path: string, headers: string[]): Promise<[Socket, string]> {
  const { hostname, port, host } = new URL(world.url);
  const socket = connect(Number(port), hostname);
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once('data', (data) => {
    socket.pause();
    resolve(data.toString('latin1').slice(9, 12));
  });
  socket.on('error', () => resolve('cut'));
  socket.on('close', () => resolve('cut'));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers.join('\r\n')}\r\n\r\n`);
  return [socket, await promise];
}

export const readersThatStall: Attack = {
  name: 'readers-that-stall',
  finding: 'not tried',
  timed: true,
  what: 'Bob has his agent print 100,000 lines, and opens streams and WebSockets of its events that he never reads.',
  expected: onOneMachine(held('he gets his share of places, and what he does not read stays where it was')),
  run: async (world) => {
    const { bob } = world;
    const vitals = Vitals.watch(world);
    const { output } = await bob.sh('seq 100000 | tail -c 20');
    await bob.client.say(bob.conversationId, shell('seq 100000'));
    await bob.client.conversationIn(bob.conversationId, 'finished', 'error');
    const key = `X-Session-API-Key: ${bob.client.key}`;
    const stream = `/api/v1/conversation/${bob.conversationId}/events/stream`;
    const upgrade = [
      `X-Session-API-Key: ${await bob.sessionKey()}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ];
    const events = `/api/v1/sandboxes/${bob.sandboxId}/agent-server/sockets/events/${bob.conversationId}?resend_mode=all`;
    const opened = await Promise.all([
      ...Array.from({ length: STREAMS }, () => open(world, stream, [key])),
      ...Array.from({ length: SOCKETS }, () => open(world, events, upgrade)),
    ]);
    await wait(HOLD_MS);
    const state = await vitals.end(300);
    opened.forEach(([socket]) => socket.destroy());
    const count = (status: string) => opened.filter(([, each]) => each === status).length;
    return {
      held:
        state.held &&
        count('200') <= 32 &&
        count('101') <= 256 &&
        count('429') > 0 &&
        output.includes('100000'),
      seen: `${count('200')} streams, ${count('101')} sockets, ${count('429')} refused; ${state.seen}`,
    };
  },
};
