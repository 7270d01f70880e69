import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AgentServerClient } from '../../src/v1/agent-servers/agent-server.client.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { startListening } from '../support/start-listening.js';
import { until } from '../support/until.js';

const MIB = 1024 * 1024;
const SEGMENT = Buffer.from('{},'.repeat(20_000));

/** What listens at the address of a sandbox, and sends whatever the test wants without an end. */
class ExcessiveServer {
  requests = 0;
  sent = 0;

  private constructor(
    private readonly server: Server,
    readonly address: string,
    readonly key = randomUUID(),
  ) {}

  static async start(segments: () => Iterable<Buffer>): Promise<ExcessiveServer> {
    const server = createServer();
    const excessive = new ExcessiveServer(server, `http://127.0.0.1:${await startListening(server)}`);
    server.on('request', (_request, response) => {
      excessive.requests += 1;
      excessive.send(response, segments()).catch(() => response.destroy());
    });
    return excessive;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private async send(response: ServerResponse, segments: Iterable<Buffer>): Promise<void> {
    response.writeHead(200, { 'content-type': 'application/json' });
    const counted = Readable.from(segments).on('data', (segment: Buffer) => (this.sent += segment.length));
    await pipeline(counted, response);
  }
}

function* endless(first: string, segment: Buffer): Generator<Buffer> {
  yield Buffer.from(first);
  for (;;) {
    yield segment;
  }
}

let service: TestApp;
let server: ExcessiveServer;
let sandbox: string;

beforeAll(async () => {
  service = await createTestApp();
});

afterAll(async () => {
  await service.close();
});

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  server.close();
});

async function row(): Promise<Record<string, unknown>> {
  const [found] = await service.dataSource.query<Record<string, unknown>[]>(
    'SELECT status, status_detail, address FROM sandboxes WHERE id = $1',
    [sandbox],
  );
  return found ?? {};
}

describe('an agent server that sends more than any honest one', () => {
  it.each<[string, string, Buffer, RegExp]>([
    ['values', '[', SEGMENT, /more than 100000 values/],
    ['values in a page', '{"items":[', SEGMENT, /more than 100000 values/],
    ['bytes', '["', Buffer.alloc(MIB, 'x'), /more than 8 MiB/],
    ['depth', '[', Buffer.from('['.repeat(1_000)), /more than 128 values inside each other/],
  ])('is ended, and its sandbox says why: %s', async (_name, first, segment, cause) => {
    server = await ExcessiveServer.start(() => endless(first, segment));
    sandbox = await insertRunningSandbox(service, service.user.id, server);
    const stopped: string[] = [];
    service.app.get(SandboxEvents, { strict: false }).on('stopped', (id) => void stopped.push(id));
    await openLog(service, service.user.id, sandbox);
    await until(async () => (await row())['status'] === 'ERROR');

    expect(await row()).toEqual({
      status: 'ERROR',
      status_detail: expect.stringMatching(cause),
      address: null,
    });
    await until(() => stopped.includes(sandbox));
    // Three sizes of a page, each with what was on its way when it was given up.
    expect(server.requests).toBeLessThanOrEqual(4);
    expect(server.sent).toBeLessThan(64 * MIB);
  });

  it('is not asked again by a service that starts later', async () => {
    server = await ExcessiveServer.start(() => endless('[', SEGMENT));
    sandbox = await insertRunningSandbox(service, service.user.id, server);
    await openLog(service, service.user.id, sandbox);
    await until(async () => (await row())['status'] === 'ERROR');
    const { requests } = server;
    const other = await createTestApp({}, service.databaseUrl);
    const { status } = await fetch(`${other.url}/health/live`);
    await other.app.close();

    expect(status).toBe(200);
    expect(server.requests).toBe(requests);
  });

  it('harms nobody when it only answers slowly', async () => {
    server = await ExcessiveServer.start(() => []);
    sandbox = await insertRunningSandbox(service, service.user.id, server);
    const target = { address: server.address, sessionKey: server.key };
    const client = service.app.get(AgentServerClient, { strict: false });
    await expect(client.findConversation(target, randomUUID())).rejects.toThrow('its response was not JSON');
    expect((await row())['status']).toBe('RUNNING');
  });
});
