import { afterEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { RawServer } from '../support/raw-server.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const MIB = 1024 * 1024;
const SEGMENT = Buffer.from('{},'.repeat(20_000));

function* endless(first: string, segment: Buffer): Generator<Buffer> {
  yield Buffer.from(first);
  for (;;) {
    yield segment;
  }
}

const service = useTestApp();
let server: RawServer;
let sandbox: string;
let requests: string[];
let sent: number;

/** What listens at the address of a running sandbox sends whatever the test wants, without an end. */
async function startSandbox(segments: () => Iterable<Buffer>): Promise<string> {
  [requests, sent] = [[], 0];
  server = await RawServer.start((request, response) => {
    requests.push(request.url ?? '');
    response.writeHead(200, { 'content-type': 'application/json' });
    const counted = Readable.from(segments()).on('data', (segment: Buffer) => (sent += segment.length));
    pipeline(counted, response).catch(() => response.destroy());
  });
  const key = randomUUID();
  sandbox = await insertRunningSandbox(service, service.user.id, { address: server.origin, key });
  return key;
}

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  await server.close();
});

/** Sizes of the pages that were asked for; its socket may be tried again meanwhile. */
function pages(): string[] {
  return requests.flatMap((url) => /\/events\/search\?limit=(\d+)/.exec(url)?.[1] ?? []);
}

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
    await startSandbox(() => endless(first, segment));
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
    expect(pages()).toEqual(['100', '10', '1']);
    // Of each, what is read, and what Linux keeps on the way: up to 36 MiB.
    expect(sent).toBeLessThan(requests.length * (8 + 36 + 1) * MIB);
  });

  it('harms nobody when it only answers slowly', async () => {
    const sessionKey = await startSandbox(() => []);
    const target = { address: server.origin, sessionKey };
    const client = service.app.get(AgentServerClient, { strict: false });
    await expect(client.findConversation(target, randomUUID())).rejects.toThrow('its response was not JSON');
    expect((await row())['status']).toBe('RUNNING');
  });
});
