import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { type WebSocket, WebSocketServer } from 'ws';
import { ApiServerError, ApiServer } from './api-server.js';
import { FakeKubernetes } from '../../../../test/fakes/fake-kubernetes.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { useFolder } from '../../../../test/support/use-folder.js';
import { type WriteMoments, writeToStandardInput } from './standard-input.js';

const PODS = '/api/v1/namespaces/n/pods';
const LINE = '{"session_api_key":"k"}';
const STATUS = 3;
const BEGUN = Buffer.of(STATUS);
const NEVER = new AbortController().signal;

/** What the API server says over an attach about its end. */
function statusFrame(status: object): Buffer {
  return Buffer.concat([BEGUN, Buffer.from(JSON.stringify(status))]);
}

describe('writeToStandardInput', () => {
  const folder = useFolder();
  let server: Server;
  let attaches: WebSocketServer;
  let api: ApiServer;

  beforeEach(async () => {
    server = createServer();
    attaches = new WebSocketServer({ server, handleProtocols: ([first = '']) => first });
    const port = await startListening(server);
    const kubeconfig = path.join(folder.path, 'kubeconfig');
    await writeFile(kubeconfig, FakeKubernetes.kubeconfig(port));
    api = new ApiServer(kubeconfig);
  });

  afterEach(async () => {
    await api.close();
    attaches.clients.forEach((client) => client.terminate());
    attaches.close();
    server.close();
  });

  /** The next attach, which begins as with a real cluster, and the input that it is given until that is closed. */
  function nextAttach(): Promise<{ socket: WebSocket; input: Promise<string> }> {
    const { promise, resolve } = Promise.withResolvers<{ socket: WebSocket; input: Promise<string> }>();
    attaches.once('connection', (socket: WebSocket) => {
      const input = Promise.withResolvers<string>();
      let text = '';
      socket.on('message', (frame: Buffer) => {
        if (frame[0] === 255) {
          input.resolve(text);
        } else {
          text += frame.subarray(1).toString('utf8');
        }
      });
      socket.once('close', () => input.resolve(`cut after "${text}"`));
      socket.send(BEGUN);
      resolve({ socket, input: input.promise });
    });
    return promise;
  }

  const write = (moments: Partial<WriteMoments> = {}): Promise<void> =>
    writeToStandardInput(
      api,
      PODS,
      'a',
      LINE,
      { permitted: Promise.resolve(), arrived: NEVER, ...moments },
      NEVER,
    );

  it('stays until the cluster says that the line was written, and not only that the attach has begun', async () => {
    const attach = nextAttach();
    const writing = write();
    const { socket, input } = await attach;
    expect(await input).toBe(`${LINE}\n`);
    const isThere = Promise.race([
      once(socket, 'pong').then(() => true),
      once(socket, 'close').then(() => false),
    ]);
    socket.ping();
    expect(await isThere).toBe(true);

    socket.send(statusFrame({ metadata: {}, status: 'Success' }));
    await writing;
  });

  it('writes nothing before it may', async () => {
    const attach = nextAttach();
    const permitted = Promise.withResolvers<void>();
    const writing = write({ permitted: permitted.promise });
    const { input } = await attach;
    permitted.reject(new ApiServerError('not now', 429, 'TooManyRequests'));
    await expect(writing).rejects.toThrow('not now');
    expect(await input).toBe('cut after ""');
  });

  it('leaves when the line has arrived, however long the node keeps the attach open', async () => {
    const attach = nextAttach();
    const arrived = new AbortController();
    const writing = write({ arrived: arrived.signal });
    const { socket, input } = await attach;
    expect(await input).toBe(`${LINE}\n`);
    const left = once(socket, 'close');
    arrived.abort();
    await writing;
    await left;
  });

  it.each([
    [
      'is refused',
      (socket: WebSocket) => socket.send(statusFrame({ status: 'Failure', message: 'not running' })),
      'not running',
    ],
    ['is cut', (socket: WebSocket) => socket.terminate(), 'the attach was cut'],
    ['ends without a word', (socket: WebSocket) => socket.close(), 'the attach was cut'],
  ])('says that it may not have been written when the attach %s', async (_how, end, message) => {
    const attach = nextAttach();
    const outcome = write().catch((error: unknown) => error);
    const { socket, input } = await attach;
    await input;
    end(socket);
    const failure = await outcome;
    expect(failure).toBeInstanceOf(ApiServerError);
    expect(failure).toMatchObject({ message, isTemporary: true });
  });
});
