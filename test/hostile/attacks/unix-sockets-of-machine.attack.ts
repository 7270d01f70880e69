import { randomBytes } from 'node:crypto';
import { chmod, readdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { homedir } from 'node:os';
import { once } from 'node:events';
import { z } from 'zod';
import { readPostmasterPid } from '../../../packages/embedded-postgres/src/process-identity.js';
import { type Attack, held, notPromised } from '../attack.js';

/** Connects to every socket that it finds or has heard of, and prints those that took it in. */
const CONNECT = `
import { readFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
const found = spawnSync('find', ['/', '-type', 's', '-not', '-path', '/proc/*'], { encoding: 'utf8' }).stdout.split('\\n');
const abstract = readFileSync('/proc/net/unix', 'utf8').split('\\n').map((line) => line.split(/\\s+/)[7] ?? '').filter((name) => name.startsWith('@')).map((name) => '\\0' + name.slice(1));
const told = JSON.parse(process.argv[2]);
const names = [...new Set([...found, ...abstract, ...told])].filter((name) => name !== '');
const taken = await Promise.all(names.map((name) => new Promise((resolve) => {
  const socket = connect(name);
  const end = (value) => { clearTimeout(timer); socket.destroy(); resolve(value); };
  const timer = setTimeout(() => end(null), 3000);
  socket.on('connect', () => end(name));
  socket.on('error', () => end(null));
})));
console.log(JSON.stringify(taken.filter((name) => name !== null)));
`;
const FOLDERS = ['/run', '/tmp', '/var/tmp', '/dev/shm', homedir()];

export const unixSocketsOfMachine: Attack = {
  name: 'unix-sockets-of-machine',
  finding: 'held',
  what: "Bob's tool connects to every socket of the machine: the database's, an engine's, those of other programs, abstract ones.",
  expected: {
    process: held('it reaches none that a program outside of its sandbox listens on'),
    unwrapped: notPromised("the machine's own permissions decide"),
    docker: held('it reaches none that a program outside of its sandbox listens on'),
    kubernetes: held('it reaches none that a program outside of its sandbox listens on'),
  },
  run: async ({ bob, dataDir }) => {
    const name = `hostile-${randomBytes(6).toString('hex')}.sock`;
    const addresses = [`\0${name}`, ...FOLDERS.map((folder) => `${folder}/${name}`)];
    const servers: Server[] = [];
    let visits = 0;
    try {
      for (const address of addresses) {
        const server = await listenAt(address);
        server?.on('connection', (socket) => {
          visits += 1;
          socket.destroy();
        });
        servers.push(...(server === null ? [] : [server]));
      }
      const database = (await readPostmasterPid(`${dataDir}/postgres`))?.socketDirectory ?? '';
      const ofDatabase = (await readdir(database)).filter(
        (one) => one.startsWith('.s.') && !one.endsWith('.lock'),
      );
      const told = [
        ...addresses,
        ...ofDatabase.map((one) => `${database}/${one}`),
        '/var/run/docker.sock',
        '/run/containerd/containerd.sock',
        '/run/dbus/system_bus_socket',
      ];
      const taken = z.array(z.string()).parse(await bob.nodeJson(CONNECT, [JSON.stringify(told)], 300));
      const foreign = taken.filter((one) => told.includes(one));
      return {
        held: foreign.length === 0 && visits === 0,
        seen:
          foreign.length + visits === 0
            ? `none of ${told.length} known sockets lets it in; ${taken.length} of its own sandbox do`
            : `connected to ${foreign.map((one) => one.replace('\0', '@').replace(dataDir, 'DATA_DIR')).join(', ')}`,
      };
    } finally {
      servers.forEach((server) => server.close());
      await Promise.all(addresses.slice(1).map((address) => rm(address, { force: true })));
    }
  },
};

/** Open to every user of the machine; null where we may not listen ourselves. */
async function listenAt(address: string): Promise<Server | null> {
  const server = createServer().listen(address);
  try {
    await once(server, 'listening');
  } catch {
    return null;
  }
  if (!address.startsWith('\0')) {
    await chmod(address, 0o777);
  }
  return server;
}
