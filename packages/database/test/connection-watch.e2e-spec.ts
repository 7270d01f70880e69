import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createServer, type Server, type Socket } from 'node:net';
import { SILENT_LOG } from '@slipway/common/log.js';
import { ConnectionWatch } from '../src/connection-watch.js';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';

const LOOKS = 4;
/** The type of the record (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 22;

/** Something at the address of a database, which says what a test wants it to. */
let server: Server;
let clients: Socket[];
/** What each connection has sent. */
let asked: Buffer[];
let watch: ConnectionWatch;
let isUsed: boolean;

beforeEach(async () => {
  clients = [];
  asked = [];
  isUsed = true;
  server = createServer((client) => {
    clients.push(client);
    client.on('error', () => undefined);
    client.on('data', (data) => asked.push(data));
  });
  const port = await startListening(server);
  watch = new ConnectionWatch(`postgres://somebody@127.0.0.1:${port}/slipway`, SILENT_LOG).start(
    () => isUsed,
  );
  // The test looks itself.
  watch.stop();
});

afterEach(async () => {
  watch.stop();
  clients.forEach((client) => client.destroy());
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

/** A connection of the pool, with what ended it. */
async function openConnection(): Promise<{ socket: Socket; ended: Promise<string> }> {
  const socket = watch.openSocket();
  const ended = new Promise<string>((resolve) => {
    socket.once('error', ({ message }) => resolve(message));
  });
  const { port } = server.address() as { port: number };
  socket.connect(port, '127.0.0.1');
  const before = clients.length;
  await until(() => clients.length > before && !socket.connecting);
  return { socket, ended };
}

function look(times: number): void {
  Array.from({ length: times }).forEach(() => watch.look());
}

describe('ConnectionWatch', () => {
  it('asks nothing while bytes arrive, or nobody waits', async () => {
    const { socket } = await openConnection();
    for (let turn = 1; turn <= 2 * LOOKS; turn += 1) {
      clients[0]?.write('x');
      await until(() => socket.bytesRead === turn);
      watch.look();
    }
    isUsed = false;
    look(2 * LOOKS);

    expect(clients).toHaveLength(1);
    expect(watch.isSilent).toBe(false);
  });

  it('begins the handshake that a server with TLS offers, which complains of clients that leave instead', async () => {
    await openConnection();
    watch.look();
    await until(() => asked.length === 1);
    clients[1]?.write('S');

    await until(() => asked.length === 2);
    expect(asked[1]?.[0]).toBe(TLS_HANDSHAKE);
  });

  it('asks with eight bytes that every PostgreSQL answers, and is content with any answer', async () => {
    const { socket } = await openConnection();
    watch.look();
    await until(() => asked.length === 1);
    expect(asked[0]?.toString('hex')).toBe('0000000804d2162f');
    clients[1]?.write('N');
    await until(() => clients[1]?.destroyed === true);

    expect(watch.isSilent).toBe(false);
    expect(socket.destroyed).toBe(false);
  });

  it('cuts all connections when there is no answer, and fails new ones until there is one', async () => {
    const open = [await openConnection(), await openConnection()];
    look(1 + LOOKS);

    expect(await Promise.all(open.map(({ ended }) => ended))).toEqual(
      open.map(() => 'Connection terminated: the database does not answer'),
    );
    expect(watch.isSilent).toBe(true);
    const { socket, ended } = { socket: watch.openSocket(), ended: Promise.withResolvers<string>() };
    socket.once('error', ({ message }) => ended.resolve(message));
    socket.connect((server.address() as { port: number }).port, '127.0.0.1');
    expect(await ended.promise).toContain('Connection terminated');

    asked = [];
    isUsed = false;
    server.on('connection', (client) => client.write('S'));
    watch.look();
    await until(() => !watch.isSilent);
    const again = await openConnection();
    expect(again.socket.destroyed).toBe(false);
    again.socket.destroy();
  });

  it('takes a refusal for an answer: whoever connects gets the same one', async () => {
    const { socket } = await openConnection();
    look(1 + LOOKS);
    expect(watch.isSilent).toBe(true);
    await until(() => socket.destroyed);
    clients.forEach((client) => client.destroy());
    await new Promise((resolve) => {
      server.close(resolve);
    });

    watch.look();

    await until(() => !watch.isSilent);
  });
});
