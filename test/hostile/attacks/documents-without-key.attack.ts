import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { type Attack, held, type Sighting } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const CONNECTIONS = [10, 50];
const EACH_MS = 5_000;
const MAX_P99_MS = 250;
const MAX_GROWTH_MIB = 200;
const DOCUMENT = ['/openapi.json'];
const PAGES = [
  '/docs',
  '/docs/swagger-ui-bundle.js',
  '/docs/swagger-ui-bundle.js.map',
  '/docs/swagger-ui-init.js',
  '/docs/swagger-ui.css',
];

/**
 * Asks for the next document as soon as the last one is there, on each connection. It reads in a thread of its own and
 * keeps nothing, so that it does not delay what is measured.
 */
const READER = `
const { connect } = require('node:net');
const { parentPort, workerData: { host, port, connections, paths, forMs } } = require('node:worker_threads');
const told = { answers: 0, bytes: 0, others: 0 };
let isOver = false;
function open(first) {
  let [turn, left] = [first, 0];
  const ask = () => {
    const path = paths[turn % paths.length];
    const encoding = ['identity', 'gzip', 'br'][Math.floor(turn / paths.length) % 3];
    turn += 1;
    socket.write('GET ' + path + ' HTTP/1.1\\r\\nHost: ' + host + ':' + port + '\\r\\nAccept-Encoding: ' + encoding + '\\r\\n\\r\\n');
  };
  let head = '';
  const take = (length, buffer) => {
    told.bytes += length;
    if (left > 0) {
      left -= length;
    } else {
      head += buffer.latin1Slice(0, length);
      const end = head.indexOf('\\r\\n\\r\\n');
      if (end < 0) return true;
      const size = /content-length: (\\d+)/i.exec(head);
      left = (size ? Number(size[1]) : 0) - (head.length - end - 4);
      if (head.slice(9, 12) !== '200') told.others += 1;
      head = '';
    }
    if (left <= 0 && !isOver) {
      told.answers += 1;
      ask();
    }
    return true;
  };
  const socket = connect({ port, host, onread: { buffer: Buffer.alloc(1 << 18), callback: take } }, ask);
  socket.on('error', () => {});
  socket.on('close', () => { if (!isOver) setTimeout(open, 100, turn); });
  sockets.push(socket);
}
const sockets = [];
for (let index = 0; index < connections; index += 1) open(index);
setTimeout(() => {
  isOver = true;
  sockets.forEach((socket) => socket.destroy());
  parentPort.postMessage(told);
}, forMs);
`;

const toldSchema = z.object({ answers: z.number(), bytes: z.number(), others: z.number() });

export const documentsWithoutKey: Attack = {
  name: 'documents-without-key',
  finding: 10,
  timed: true,
  what: 'Ten connections, then fifty, fetch the OpenAPI document and the files of its pages without a key, one after the other.',
  expected: { process: held('each costs little more than its bytes; Alice gets her settings as before') },
  run: async (world) => {
    const rounds: Sighting[] = [];
    for (const connections of CONNECTIONS) {
      rounds.push(await fetchAll(world, DOCUMENT, connections), await fetchAll(world, PAGES, connections));
    }
    return { held: rounds.every(({ held }) => held), seen: rounds.map(({ seen }) => seen).join('; ') };
  },
};

async function fetchAll(world: HostileWorld, paths: string[], connections: number): Promise<Sighting> {
  const { hostname: host, port } = new URL(world.url);
  const workerData = { host, port: Number(port), connections, paths, forMs: EACH_MS };
  const vitals = Vitals.watch(world);
  const reader = new Worker(READER, { eval: true, workerData });
  const [told] = await once(reader, 'message');
  await reader.terminate();
  const { answers, bytes, others } = toldSchema.parse(told);
  if (answers === 0) {
    throw new Error('no document has arrived');
  }
  const { held: isHeld, seen } = await vitals.end(MAX_GROWTH_MIB, MAX_P99_MS);
  return {
    held: isHeld,
    seen: `${connections} connections to ${paths[0]}: ${answers} answers (${others} not 200), ${Math.round(bytes / 1e6)} MB; ${seen}`,
  };
}
