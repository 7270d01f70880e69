import { describe, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { reservedPort } from '../../../test/support/reserved-port.js';
import { until } from '../../../test/support/until.js';

const RELAY = fileURLToPath(new URL('../../../dist/bundle/agent-server/relay.main.js', import.meta.url));

/** What a shell sees of a relay that runs a program. */
function relay(...command: string[]): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [RELAY, '--', ...command], { encoding: 'utf8' });
  return { status, stderr };
}

describe('relay.main', () => {
  it('ends as its program ends', () => {
    expect(relay('sh', '-c', 'exit 3').status).toBe(3);
    expect(relay('sh', '-c', 'kill -KILL $$').status).toBe(128 + 9);
  });

  it('says that it cannot run a program', () => {
    expect(relay('/no/such/program')).toEqual({
      status: 127,
      stderr: expect.stringContaining('/no/such/program cannot be run'),
    });
  });

  it('passes on a signal that comes as soon as there is a program', () => {
    const script = 'trap "exit 5" TERM; kill -TERM $PPID; for i in $(seq 1000); do sleep 0.01; done';
    // One relay in three was too late when it listened after the start of its program.
    const statuses = Array.from({ length: 8 }, () => relay('sh', '-c', script).status);
    expect(statuses).toEqual(Array.from({ length: 8 }, () => 5));
  });

  it('without a program, leads to whichever socket of a folder answers, and ends when it is told to', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'relay-'));
    const [port, own] = [await reservedPort(), path.join(folder, 'own', 'inbound.sock')];
    const relays = [`tcp:127.0.0.1:${port}=any:${folder}/any`, `unix:${own}=tcp:127.0.0.1:${port}`];
    const program = spawn(process.execPath, [RELAY, ...relays.flatMap((text) => ['--relay', text])]);
    const answer = async (): Promise<string> =>
      await fetch(`http://127.0.0.1:${port}`).then(
        async (response) => await response.text(),
        () => 'nothing',
      );
    try {
      await until(async () => (await stat(own).catch(() => null)) !== null);
      expect(await answer()).toBe('nothing');
      const first = await answering(path.join(folder, 'any', 'a.sock'), 'first');
      expect(await answer()).toBe('first');
      await stopped(first);
      const second = await answering(path.join(folder, 'any', 'b.sock'), 'second');
      expect(await answer()).toBe('second');
      await stopped(second);
      program.kill('SIGTERM');
      expect(await once(program, 'exit')).toEqual([0, null]);
    } finally {
      program.kill('SIGKILL');
      await rm(folder, { recursive: true });
    }
  });
});

/** A server whose socket is left behind when it stops, as by a process that was killed. */
async function answering(socket: string, text: string): Promise<Server> {
  const server = createServer((_, response) => response.setHeader('connection', 'close').end(text));
  await mkdir(path.dirname(socket), { recursive: true });
  server.listen(`${socket}.new`);
  await once(server, 'listening');
  await rename(`${socket}.new`, socket);
  return server;
}

async function stopped(server: Server): Promise<void> {
  server.close();
  await once(server, 'close');
}
