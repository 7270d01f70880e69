import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held } from '../attack.js';
import { Vitals } from '../support/vitals.js';

const CONNECTIONS = 1_500;
/** A body may take 20 s. */
const HOLD_MS = 25_000;

export const placesOfOthers: Attack = {
  name: 'places-of-others',
  finding: 15,
  timed: true,
  what: 'Bob opens 1,500 connections and sends a POST without its body over each, as many as all may have under way.',
  expected: { process: held('he gets a quarter of the places at most, and each body has 20 seconds') },
  run: async (world) => {
    const vitals = Vitals.watch(world);
    const { hostname, port, host } = new URL(world.url);
    const head = [
      'POST /api/settings HTTP/1.1',
      `Host: ${host}`,
      `X-Session-API-Key: ${world.bob.client.key}`,
      'Content-Type: application/json',
      'Content-Length: 100',
    ].join('\r\n');
    const statuses = new Map<string, number>();
    const sockets = Array.from({ length: CONNECTIONS }, () => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => socket.destroy());
      socket.once('data', (data) => {
        const status = data.toString('latin1').slice(9, 12);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      });
      socket.write(`${head}\r\n\r\n{`);
      return socket;
    });
    await wait(HOLD_MS);
    const open = sockets.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length;
    const state = await vitals.end(200, 250);
    sockets.forEach((socket) => socket.destroy());
    return {
      held: state.held && open === 0 && (statuses.get('429') ?? 0) >= CONNECTIONS - 250,
      seen: `${open} of ${CONNECTIONS} connections open after ${HOLD_MS / 1000} s, statuses ${JSON.stringify([...statuses])}; ${state.seen}`,
    };
  },
};
