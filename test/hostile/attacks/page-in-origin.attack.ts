import { once } from 'node:events';
import { IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { until } from '../../support/until.js';
import { type Attack, held, notPromised } from '../attack.js';

const PAGE = '<script>/* the page of Bob */</script>';
/** Listens on every port that a sandbox might be given, as far as that goes. */
const SQUAT = `
import { createServer } from 'node:http';
let listening = 0;
const ports = [...Array.from({ length: 10000 }, (_, index) => 20000 + index), 8011, 8012];
await Promise.all(ports.map((port) => new Promise((resolve) => {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(process.argv[2]));
  server.on('error', () => resolve());
  server.listen(port, '127.0.0.1', () => { listening += 1; resolve(); });
})));
console.log('SQUATTING ON ' + listening);
`;

export const pageInOrigin: Attack = {
  name: 'page-in-origin',
  finding: 9,
  what: "Bob serves a page at the address of Alice's application before her application has started.",
  expected: {
    process: held("no port of Bob's network is one of Alice's"),
    unwrapped: notPromised('sandboxes share the ports of the machine'),
    docker: held("no port of Bob's container is one of Alice's"),
  },
  run: async (world) => {
    const url = new URL(await world.alice.portUrl('WORKER_1'));
    const trap = await world.bob.nodeInBackground(SQUAT, [PAGE]);
    await until(async () => (await trap.output()).includes('SQUATTING'));
    const answer = await openPort(new URL(world.url), url, await world.alice.sessionKey());
    const [squatting = ''] = (await trap.output()).match(/SQUATTING ON \d+/) ?? [];
    await trap.stop();
    return {
      held: !answer.body.includes(PAGE),
      seen: `${squatting.toLowerCase()} ports; Alice's address answers ${answer.status}${answer.body.includes(PAGE) ? ' with the page of Bob' : ''}`,
    };
  },
};

/** Not every resolver knows names below `localhost`, so the name is only in the header. */
async function openPort(service: URL, port: URL, key: string): Promise<{ status: number; body: string }> {
  const asked = request({
    host: service.hostname,
    port: service.port,
    path: '/',
    headers: { Host: port.host, 'X-Session-API-Key': key },
  }).end();
  const [response] = z.tuple([z.instanceof(IncomingMessage)]).parse(await once(asked, 'response'));
  return { status: response.statusCode ?? 0, body: await text(response) };
}
