import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { newProxySocket } from './sandbox-relays.js';

describe('newProxySocket', () => {
  let folder: string;
  let servers: Server[];

  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(tmpdir(), 'proxies-')), 'sockets');
    servers = [];
  });

  afterEach(async () => {
    servers.forEach((server) => server.close());
    await rm(path.dirname(folder), { recursive: true });
  });

  async function listening(socket: string): Promise<Server> {
    const server = createServer();
    servers.push(server);
    server.listen(socket);
    await once(server, 'listening');
    return server;
  }

  it('is in a folder that other users of the machine do not get into', async () => {
    const socket = await newProxySocket(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(path.dirname(socket)).toBe(path.join(folder, 'proxies'));
  });

  it('leaves sockets of other proxies as they are, and removes those of proxies that were killed', async () => {
    const [alive, killed] = [await newProxySocket(folder), await newProxySocket(folder)];
    await listening(alive);
    const server = await listening(`${killed}.new`);
    await rename(`${killed}.new`, killed);
    server.close();
    await once(server, 'close');
    expect(await readdir(path.dirname(alive))).toHaveLength(2);
    const next = await newProxySocket(folder);
    expect(await readdir(path.dirname(alive))).toEqual([path.basename(alive)]);
    expect([alive, killed]).not.toContain(next);
  });
});
