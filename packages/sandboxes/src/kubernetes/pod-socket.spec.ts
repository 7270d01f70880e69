import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type WebSocket, WebSocketServer } from 'ws';
import { FakeKubernetes } from '../../../../test/fakes/fake-kubernetes.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import { useFolder } from '../../../../test/support/use-folder.js';
import { ApiServer } from './api-server.js';
import { connectToPod } from './pod-socket.js';

const DATA = 0;
const ERROR = 1;
const PORT = Buffer.of(0x40, 0x1f);
const MEGABYTE = Buffer.alloc(1024 * 1024);
/** Far more than the buffers on the way hold. */
const MANY = 64;
const FORMER_POD = 'network namespace for sandbox "0a" is closed';

describe('a tunnel to a pod', () => {
  const folder = useFolder();
  let server: Server;
  let sockets: WebSocketServer;
  let tunnels: WebSocket[];
  let received: string[];
  let api: ApiServer;
  let socket: Socket | null;

  beforeEach(async () => {
    server = createServer((_request, response) => response.writeHead(404).end('{"message":"no such pod"}'));
    sockets = new WebSocketServer({ noServer: true });
    tunnels = [];
    received = [];
    socket = null;
    server.on('upgrade', (request, client, head) => {
      sockets.handleUpgrade(request, client, head, (tunnel) => {
        const index = tunnels.push(tunnel) - 1;
        received.push('');
        tunnel.on('message', (data: Buffer) => (received[index] += data.subarray(1).toString('latin1')));
        [DATA, ERROR].forEach((channel) => tunnel.send(Buffer.of(channel, ...PORT)));
      });
    });
    const file = path.join(folder.path, 'config');
    await writeFile(file, FakeKubernetes.kubeconfig(await startListening(server)));
    api = new ApiServer(file);
  });

  afterEach(async () => {
    socket?.destroy();
    tunnels.forEach((tunnel) => tunnel.terminate());
    server.closeAllConnections();
    server.close();
    sockets.close();
    await api.close();
  });

  const connected = async (): Promise<Socket> => {
    socket = await connectToPod(api, { namespace: 'agents', pod: 'one', port: 8000 });
    return socket;
  };
  const send = (index: number, channel: number, bytes: string): void =>
    tunnels[index]?.send(Buffer.concat([Buffer.of(channel), Buffer.from(bytes)]));

  it('carries bytes both ways, and ends with the pod', async () => {
    const client = await connected();
    client.write('question');
    await until(() => received[0] === 'question');
    send(0, DATA, 'an');
    send(0, DATA, 'swer');
    tunnels[0]?.close();
    expect(await text(client)).toBe('answer');
  });

  it('says why the API server refused it', async () => {
    server.removeAllListeners('upgrade');
    await expect(connected()).rejects.toMatchObject({ status: 404, message: 'no such pod' });
  });

  it('fails with what the node says about the port', async () => {
    const response = text(await connected());
    send(0, ERROR, 'connection refused');
    await expect(response).rejects.toThrow('connection refused');
  });

  it('sends the same bytes again where the node found the pod that had the name before', async () => {
    const client = await connected();
    const response = text(client);
    client.write('question');
    await until(() => received[0] === 'question');
    send(0, ERROR, FORMER_POD);
    tunnels[0]?.close();
    await until(() => received[1] === 'question');
    send(1, DATA, 'answer');
    tunnels[1]?.close();
    expect(await response).toBe('answer');
  });

  it('sends nothing again after the first response', async () => {
    const client = await connected();
    client.write('question');
    send(0, DATA, 'answer');
    await once(client, 'readable');
    send(0, ERROR, FORMER_POD);
    await expect(text(client)).rejects.toThrow('is closed');
    expect(tunnels).toHaveLength(1);
  });

  it('takes no more from the pod than its reader takes', async () => {
    const client = await connected();
    const tunnel = tunnels[0];
    const frame = Buffer.concat([Buffer.of(DATA), MEGABYTE]);
    for (let sent = 0; sent < MANY; sent += 1) {
      tunnel?.send(frame);
    }
    await once(client, 'readable');
    // The rest waits where it comes from.
    expect(client.readableLength).toBeLessThan((MANY / 2) * MEGABYTE.length);
    expect(tunnel?.bufferedAmount).toBeGreaterThan((MANY / 2) * MEGABYTE.length);
    let size = 0;
    client.on('data', (bytes: Buffer) => (size += bytes.length));
    await until(() => size === MANY * MEGABYTE.length);
  });

  it('makes its writer wait while the pod takes nothing', async () => {
    const client = await connected();
    tunnels[0]?.pause();
    let taken = 0;
    for (let written = 0; written < MANY; written += 1) {
      client.write(MEGABYTE, () => (taken += 1));
    }
    await until(() => taken > 0);
    expect(client.writableLength).toBeGreaterThan((MANY / 2) * MEGABYTE.length);
    tunnels[0]?.resume();
    await until(() => taken === MANY);
  });
});
