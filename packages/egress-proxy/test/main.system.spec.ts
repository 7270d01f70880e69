import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { startListening, stopServer } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { FakeEgressService, KEY } from './support/fake-egress-service.js';
import { proxyAuthorization } from './support/proxy-world.js';
import { CREDENTIAL, samplePolicy } from './support/sample-policy.js';

const MAIN = fileURLToPath(new URL('../../../dist/egress-proxy/main.js', import.meta.url));

let service: FakeEgressService & { address: URL };
let folder: string;
let programs: ChildProcess[];
let log: string[];

beforeEach(async () => {
  service = await FakeEgressService.start();
  folder = await mkdtemp(path.join(tmpdir(), 'egress-main-'));
  log = [];
  programs = [];
});

afterEach(async () => {
  programs.forEach((each) => each.kill('SIGKILL'));
  await service.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Answers the port at which it listens. */
async function start(environment: Record<string, string>, key: string | null): Promise<number> {
  const child = spawn(process.execPath, [MAIN], {
    env: {
      EGRESS_PROXY_LISTEN: '127.0.0.1:0',
      EGRESS_PROXY_SERVICE_URL: service.address.href,
      ...environment,
    },
    stdio: ['pipe', 'inherit', 'pipe'],
  });
  programs.push(child);
  if (key === null) {
    child.stdin.end();
  } else {
    child.stdin.write(`${key}\n`);
  }
  const own: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    log.push(line);
    own.push(line);
  });
  await until(() => own.some((line) => line.includes('egress proxy started')));
  const [, port] = /"port":(\d+)/.exec(own.join('\n')) ?? [];
  return Number(port);
}

describe('the program', () => {
  it('ends what is under way when it is told to stop, and reports it', async () => {
    let finish: () => void = () => undefined;
    const host = createServer((_incoming, response) => {
      response.write('begun ');
      finish = () => response.end('and ended');
    });
    const hostPort = await startListening(host);
    service.policies.set(CREDENTIAL, samplePolicy({ networks: ['127.0.0.0/8'] }));
    const port = await start({ EGRESS_PROXY_LISTEN: `127.0.0.1:0,unix:${folder}/proxy.sock` }, KEY);
    const ask = () =>
      request({
        socketPath: `${folder}/proxy.sock`,
        path: `http://127.0.0.1:${hostPort}/`,
        headers: { Host: `127.0.0.1:${hostPort}`, ...proxyAuthorization(CREDENTIAL) },
      });
    const health = await fetch(`http://127.0.0.1:${port}/health`);
    expect([health.status, await health.text()]).toEqual([200, 'ok\n']);
    const sent = ask();
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const [program] = programs;
    program?.kill('SIGTERM');
    await until(() => log.some((line) => line.includes('egress proxy stopping')));
    finish();
    expect(await text(answer)).toBe('begun and ended');
    if (program?.exitCode === null) {
      await once(program, 'exit');
    }
    expect(program?.exitCode).toBe(0);
    expect(service.reported).toEqual([
      expect.objectContaining({ host: '127.0.0.1', status: 200, receivedBytes: 15 }),
    ]);
    await stopServer(host);
  });

  it('ends when the parent that gave it the key is gone, and not by a Ctrl-C that the parent gets too', async () => {
    const port = await start({}, KEY);
    const [program] = programs;
    program?.kill('SIGINT');
    for (let asked = 0; asked < 5; asked += 1) {
      expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
    }
    expect(log.some((line) => line.includes('egress proxy stopping'))).toBe(false);
    program?.stdin?.destroy();
    await until(() => program?.exitCode !== null);
    expect(program?.exitCode).toBe(0);
  });

  it('shares its port with the proxies of other replicas', async () => {
    const port = await start({}, KEY);
    expect(await start({ EGRESS_PROXY_LISTEN: `127.0.0.1:${port}` }, KEY)).toBe(port);
    programs[0]?.kill('SIGKILL');
    await until(() => programs[0]?.signalCode === 'SIGKILL');
    const health = await fetch(`http://127.0.0.1:${port}/health`);
    expect(health.status).toBe(200);
  });

  it('takes its key from a file', async () => {
    const file = path.join(folder, 'key');
    await writeFile(file, `${KEY}\n`);
    const port = await start({ EGRESS_PROXY_KEY_FILE: file }, null);
    const sent = request({
      port,
      path: 'http://host.example/',
      headers: { Host: 'host.example', ...proxyAuthorization('unknown') },
    });
    sent.end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    // With a wrong key the service would not say that it knows no such sandbox.
    expect(answer.statusCode).toBe(407);
    answer.destroy();
  });
});
