import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { until } from '../../../test/support/until.js';
import { ProxyWorld, proxyAuthorization, requestHead } from './support/proxy-world.js';

let world: ProxyWorld;
let host: string;

beforeEach(async () => {
  world = await ProxyWorld.start({ strangers: 3, share: 2, pipelined: 4, heads: 4_096 });
  host = `http://api.example:${await world.startHost()}/`;
  world.allow({ sandbox: 'sandbox-2', networks: ['127.0.0.0/8'] }, 'other');
});

afterEach(async () => {
  await world.stop();
});

const other = { credential: null, headers: proxyAuthorization('other', 'sandbox-2') };
const headOfOther = (): string => requestHead(`GET ${host}`, 'other', 'sandbox-2');

describe('a share', () => {
  it('of connections is one for each sandbox, and comes back', async () => {
    const { port } = await world.startTlsHost();
    const open = [await world.connect(`one.example:${port}`), await world.connect(`one.example:${port}`)];
    expect(open.map(({ status }) => status)).toEqual([200, 200]);
    expect(await world.connect(`one.example:${port}`)).toMatchObject({
      status: 503,
      body: expect.stringContaining('share'),
    });
    expect((await world.http(host)).status).toBe(503);
    expect((await world.http(host, other)).status).toBe(200);
    open[0]?.socket.destroy();
    await until(async () => (await world.http(host)).status === 200);
  });

  it('of a connection is one request at a time, and a few that wait', async () => {
    const waiting: ServerResponse[] = [];
    world.answer = (_request, response) => waiting.push(response);
    const line = headOfOther();
    const answers = world.raw(`${line}\r\n`.repeat(3) + `${line}Connection: close\r\n\r\n`);
    for (let index = 0; index < 4; index += 1) {
      await until(() => waiting.length === index + 1);
      waiting[index]?.end(`answer ${index}\n`);
    }
    expect((await answers).match(/answer \d/g)).toEqual(['answer 0', 'answer 1', 'answer 2', 'answer 3']);
    const tooMany = await world.raw(`${line}\r\n`.repeat(5)).catch(() => '');
    expect(tooMany).toBe('');
    await until(() => world.proxy.held['clients'] === 0);
    expect(waiting.length).toBeLessThanOrEqual(5);
  });

  it('of a connection has heads of a bounded size together, and is back when they are answered', async () => {
    const line = `${headOfOther()}X: ${'x'.repeat(3_000)}\r\n`;
    const socket = connect(world.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += String(chunk)));
    for (const answers of [1, 2]) {
      socket.write(`${line}\r\n`);
      await until(() => text.split('hello\n').length > answers);
    }
    socket.destroy();
    world.answer = () => undefined;
    expect(await world.raw(`${line}\r\n`.repeat(2)).catch(() => '')).toBe('');
    await until(() => world.proxy.held['clients'] === 0);
  });

  it('of those who say nothing ends with the oldest', async () => {
    const silent: Socket[] = [];
    for (let index = 0; index < 4; index += 1) {
      const socket = connect(world.port, '127.0.0.1');
      silent.push(socket);
      await once(socket, 'connect');
      await until(() => world.proxy.held['strangers'] === Math.min(index + 1, 3));
    }
    silent[0]?.resume();
    await until(() => silent[0]?.destroyed === true);
    expect(silent.slice(1).map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
    expect((await world.http(host)).status).toBe(200);
    silent.forEach((socket) => socket.destroy());
  });

  it('of those who say nothing is taken from the place that has the most of them', async () => {
    const quiet = connect({ port: world.port, host: '127.0.0.1', localAddress: '127.0.0.2' });
    await until(() => world.proxy.held['strangers'] === 1);
    const silent: Socket[] = [];
    for (let index = 0; index < 5; index += 1) {
      const socket = connect(world.port, '127.0.0.1');
      silent.push(socket.resume());
      await once(socket, 'connect');
      await until(() => world.proxy.held['strangers'] === Math.min(index + 2, 3));
    }
    await until(() => silent.filter(({ destroyed }) => destroyed).length === 3);
    quiet.write(`${headOfOther()}\r\n`);
    const [answer]: Buffer[] = await once(quiet, 'data');
    expect(String(answer)).toContain('200 OK');
    [quiet, ...silent].forEach((socket) => socket.destroy());
  });
});
