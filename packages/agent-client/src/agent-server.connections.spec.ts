import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { WebSocketServer } from 'ws';
import { createUnixFolder, listenOnUnix, type UnixFolder } from '../../../test/support/unix-folder.js';
import { until } from '../../../test/support/until.js';
import { AgentServerConnections, type AgentServerTarget } from './agent-server.connections.js';
import { AgentServerHttp } from './agent-server.http.js';
import { AgentServerWatch } from './agent-server.watch.js';

const nothing = (): void => undefined;

describe('an agent server on a Unix socket', () => {
  let folder: UnixFolder;
  let server: Server;
  let target: AgentServerTarget;
  let connections: AgentServerConnections;
  let http: AgentServerHttp;
  let opened: number;
  let watch: AgentServerWatch | null;

  beforeEach(async () => {
    folder = await createUnixFolder();
    opened = 0;
    watch = null;
    server = createServer((request, response) => {
      const { url, headers } = request;
      response.end(JSON.stringify({ url, host: headers.host, key: headers['x-session-api-key'] }));
    });
    server.on('connection', () => (opened += 1));
    const address = await listenOnUnix(server, `${folder.path}/agent.sock`);
    target = { address, sessionKey: 'the key' };
    connections = new AgentServerConnections();
    http = new AgentServerHttp(connections);
  });

  afterEach(async () => {
    watch?.close();
    await connections.close();
    server.closeAllConnections();
    server.close();
    await folder.remove();
  });

  /** The socket of a conversation, at both of its ends. */
  async function watched(changed: () => void = nothing) {
    const accepted = once(new WebSocketServer({ server }), 'connection');
    watch = new AgentServerWatch(target, 'c1', {
      opened: nothing,
      appended: nothing,
      stateChanged: nothing,
      changed,
      closed: nothing,
    });
    const [socket, request] = await accepted;
    return { socket, request };
  }

  it('gets requests over kept-alive connections', async () => {
    const answer = { url: '/a/b?limit=1', host: 'localhost', key: 'the key' };
    for (let requests = 0; requests < 10; requests += 1) {
      expect(await http.json(target, '/a/b', { query: { limit: 1 } })).toEqual(answer);
    }
    expect(opened).toBeLessThan(5);
  });

  it('gets the socket of a conversation, and pongs for its pings', async () => {
    let changes = 0;
    const { socket, request } = await watched(() => (changes += 1));
    expect(request.url).toBe('/sockets/events/c1?frames=linked');
    expect(request.headers['x-session-api-key']).toBe('the key');
    socket.send('{}');
    await until(() => changes === 1);
    socket.ping('hello');
    const [pong] = await once(socket, 'pong');
    // Servers that look for dead connections know their pings by it, and close those that answer with nothing.
    expect(String(pong)).toBe('hello');
  });

  it('is not read while it floods the socket of a conversation', async () => {
    let changes = 0;
    const { socket } = await watched(() => (changes += 1));
    const frame = 'x'.repeat(1024 * 1024);
    const frames = 400;
    for (let sent = 0; sent < frames; sent += 1) {
      socket.send(frame);
    }
    // Most of the flood stays with its sender.
    await until(() => changes >= 10);
    expect(changes).toBeLessThan(frames);
    expect(socket.bufferedAmount).toBeGreaterThan(100 * frame.length);
  });

  it('shares no connection between two starts of a sandbox', async () => {
    await http.json(target, '/');
    await http.json({ ...target, sessionKey: 'the key of the next start' }, '/');
    expect(opened).toBe(2);
  });

  it('is forgotten when it ends', async () => {
    await http.json(target, '/');
    expect(connections.size).toBe(1);
    server.closeAllConnections();
    await until(() => connections.size === 0);
  });

  it('gets no connection after its sandbox has stopped', async () => {
    let current = true;
    const guarded = { ...target, isCurrent: async () => current };
    await http.json(guarded, '/');
    server.closeAllConnections();
    current = false;
    await expect(http.json(guarded, '/')).rejects.toThrow('the sandbox has stopped or was started again');
    expect(opened).toBe(1);
  });

  it.each(['unix:../agent.sock', 'file:///etc', 'http://host/path'])('is rejected at %s', async (address) => {
    await expect(http.json({ address, sessionKey: '' }, '/')).rejects.toThrow(
      'the address of the sandbox is invalid',
    );
  });
});
