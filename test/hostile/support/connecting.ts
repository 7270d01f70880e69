import { z } from 'zod';
import type { Tenant } from './tenant.js';

/** Where something may listen. */
export interface Target {
  host: string;
  port: number;
}

/** Connects everywhere at once; prints those that answered, with what they said first. */
const CONNECT = `
import { connect } from 'node:net';
const targets = JSON.parse(process.argv[2]);
const outcomes = await Promise.all(targets.map(({ host, port }) => new Promise((resolve) => {
  const socket = connect({ host, port });
  const end = (outcome) => { clearTimeout(timer); socket.destroy(); resolve({ host, port, ...outcome }); };
  let timer = setTimeout(() => end({ connected: false, said: 'no answer' }), 4000);
  socket.on('connect', () => {
    clearTimeout(timer);
    timer = setTimeout(() => end({ connected: true, said: '' }), 1500);
    socket.write('GET /health/live HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n');
  });
  socket.on('data', (data) => end({ connected: true, said: data.toString('latin1').slice(0, 1000) }));
  socket.on('end', () => end({ connected: false, said: 'hung up' }));
  socket.on('error', (error) => end({ connected: false, said: error.code }));
})));
console.log(JSON.stringify(outcomes));
`;
const outcomes = z.array(
  z.object({ host: z.string(), port: z.number(), connected: z.boolean(), said: z.string() }),
);

/** Prints what a sandbox takes for its gateways and name servers. */
const NEIGHBOURHOOD = `
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
const read = (file) => { try { return readFileSync(file, 'utf8'); } catch { return ''; } };
const dotted = (hex) => hex.match(/../g).reverse().map((byte) => parseInt(byte, 16)).join('.');
const gateways = read('/proc/net/route').split('\\n').slice(1).map((line) => line.split('\\t'))
  .filter((fields) => fields.length > 3 && fields[2] !== '00000000').map((fields) => dotted(fields[2]));
const servers = [...read('/etc/resolv.conf').matchAll(/^nameserver\\s+(\\S+)/gm)].map(([, server]) => server);
const own = Object.values(networkInterfaces()).flat().map(({ address }) => address);
console.log(JSON.stringify([...new Set([...gateways, ...servers, ...own])]));
`;
/** What user-mode network stacks and engines call the machine, whether or not this sandbox was told. */
export const NAMES_OF_THE_MACHINE = [
  '127.0.0.1',
  '::1',
  '10.0.2.2',
  '10.0.2.3',
  'fd00::2',
  '172.17.0.1',
  '127.0.0.53',
];

/** What the tenant's tools hear from each target; one that hangs up at once has not been connected to. */
export async function connectFrom(tenant: Tenant, targets: Target[]): Promise<z.infer<typeof outcomes>> {
  return outcomes.parse(await tenant.nodeJson(CONNECT, [JSON.stringify(targets)]));
}

/** Every address by which a sandbox might reach the machine's own loopback. */
export async function namesOfTheMachine(tenant: Tenant): Promise<string[]> {
  const found = z.array(z.string()).parse(await tenant.nodeJson(NEIGHBOURHOOD));
  return [...new Set([...NAMES_OF_THE_MACHINE, ...found.map((address) => address.replace(/%.*$/, ''))])];
}
