import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { type Attack, held } from '../attack.js';

const KEPT =
  'the service keeps the port: the program cannot bind it, and the client reads 503 until the resume';
const TRIES = 20;
const BETWEEN_MS = 50;

export const portOfPausedSandbox: Attack = {
  name: 'port-of-paused-sandbox',
  finding: 'held',
  what: "A program of the machine takes the port of Alice's sandbox while it is paused, and listens for the key that her client still sends there.",
  // Where containers call the service, others than this machine may, and agent servers have no ports here.
  expected: { process: held(KEPT), unwrapped: held(KEPT) },
  run: async ({ alice }) => {
    const url = await alice.portUrl('AGENT_SERVER');
    const key = await alice.sessionKey();
    await alice.pause();
    const thief = await bind(Number(new URL(url).port));
    const heard: string[] = [];
    thief?.on('connection', (socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('data', (chunk) => heard.push(chunk.toString('latin1')));
    });
    const response = await fetch(`${url}/api/tools`, { headers: { 'X-Session-API-Key': key } }).catch(
      () => null,
    );
    const retryAfter = response?.headers.get('retry-after') ?? null;
    const code = response === null ? null : jsonText(await response.json(), 'code');
    thief?.close();
    await alice.resume();
    const same = (await alice.portUrl('AGENT_SERVER')) === url;
    const old = await fetch(`${url}/api/tools`, { headers: { 'X-Session-API-Key': key } });
    return {
      held:
        thief === null &&
        heard.length === 0 &&
        response?.status === 503 &&
        retryAfter !== null &&
        code === 'sandbox_not_running' &&
        same &&
        old.status === 401,
      seen: `${thief === null ? 'the port was taken all the time' : 'the program got the port'}; paused ${response?.status ?? 'no answer'}, resumed at ${same ? 'the same' : 'another'} port, where the old key is ${old.status}`,
    };
  },
};

/** Null when another program listens there all the time. */
async function bind(port: number): Promise<Server | null> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const server = createServer();
    server.listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
      return server;
    } catch {
      await wait(BETWEEN_MS);
    }
  }
  return null;
}
