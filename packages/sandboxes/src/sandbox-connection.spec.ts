import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { chmod, lchown, mkdir, open, rename, symlink, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { Socket } from 'node:net';
import path from 'node:path';
import { createUnixFolder, listenOnUnix, type UnixFolder } from '../../../test/support/unix-folder.js';
import { connectionOptions, connectToSocket, SandboxSocketError } from './sandbox-connection.js';

describe('connectToSocket', () => {
  let folder: UnixFolder;
  let server: Server;
  let connections: number;

  beforeEach(async () => {
    folder = await createUnixFolder();
    connections = 0;
    server = createServer((_request, response) => response.end('the program'));
    server.on('connection', () => (connections += 1));
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await folder.remove();
  });

  const inFolder = (...names: string[]): string => path.join(folder.path, ...names);

  async function expectRefused(socketPath: string, message: string): Promise<void> {
    await expect(connectToSocket(socketPath)).rejects.toThrow(message);
    await expect(connectToSocket(socketPath)).rejects.toBeInstanceOf(SandboxSocketError);
    expect(connections).toBe(0);
  }

  it('connects to a socket', async () => {
    await listenOnUnix(server, inFolder('a.sock'));
    const socket = await connectToSocket(inFolder('a.sock'));
    socket.end('GET / HTTP/1.0\r\n\r\n');
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toContain('200 OK');
  });

  it('connects to a socket whose path is longer than a socket address may be', async () => {
    const deep = inFolder('d'.repeat(120), 'e'.repeat(120));
    await mkdir(deep, { recursive: true });
    const descriptor = await open(deep);
    try {
      await listenOnUnix(server, `/proc/self/fd/${descriptor.fd}/a.sock`);
    } finally {
      await descriptor.close();
    }
    const socket: Socket = await connectToSocket(path.join(deep, 'a.sock'));
    socket.destroy();
    expect(connections).toBe(1);
  });

  it('follows no link in the place of the socket', async () => {
    await listenOnUnix(server, inFolder('other.sock'));
    await symlink('other.sock', inFolder('a.sock'));
    await expectRefused(inFolder('a.sock'), 'something else has its name');
  });

  it('follows no link in the place of its folder', async () => {
    await mkdir(inFolder('other'));
    await listenOnUnix(server, inFolder('other', 'a.sock'));
    await symlink('other', inFolder('box'));
    await expectRefused(inFolder('box', 'a.sock'), 'ENOTDIR');
  });

  it('follows no link further up', async () => {
    await mkdir(inFolder('other', 'box'), { recursive: true });
    await listenOnUnix(server, inFolder('other', 'box', 'a.sock'));
    await symlink('other', inFolder('mine'));
    await expectRefused(inFolder('mine', 'box', 'a.sock'), 'a symbolic link leads to its folder');
  });

  it('refuses a file in the place of the socket', async () => {
    await writeFile(inFolder('a.sock'), 'no socket');
    await expectRefused(inFolder('a.sock'), 'something else has its name');
  });

  it('refuses a folder that everybody can write to', async () => {
    await listenOnUnix(server, inFolder('a.sock'));
    await chmod(folder.path, 0o777);
    await expectRefused(inFolder('a.sock'), 'everybody can write to its folder');
  });

  it('refuses a socket of somebody else', async () => {
    await listenOnUnix(server, inFolder('a.sock'));
    if (process.getuid?.() === 0) {
      await lchown(inFolder('a.sock'), 12_345, 12_345);
      await expectRefused(inFolder('a.sock'), 'something else has its name');
    }
  });

  it.each([
    ['nothing is there', 'none.sock', 'ENOENT'],
    ['nobody listens', 'a.sock', 'ECONNREFUSED'],
  ])('says when %s', async (_, name, message) => {
    await listenOnUnix(server, inFolder('b.sock'));
    await rename(inFolder('b.sock'), inFolder('a.sock'));
    server.close();
    await expectRefused(inFolder(name), message);
  });

  it('serves HTTP requests', async () => {
    await listenOnUnix(server, inFolder('a.sock'));
    const outgoing = request({
      ...connectionOptions({ kind: 'unix', socketPath: inFolder('a.sock') }),
      path: '/',
    });
    outgoing.end();
    const [response] = await once(outgoing, 'response');
    expect(response.statusCode).toBe(200);
    response.resume();
    await once(response, 'close');
  });

  it('fails HTTP requests where there is no socket', async () => {
    const outgoing = request(connectionOptions({ kind: 'unix', socketPath: inFolder('none.sock') }));
    outgoing.end();
    const [error] = await once(outgoing, 'error');
    expect(error).toBeInstanceOf(SandboxSocketError);
  });
});
