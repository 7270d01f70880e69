import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
import { until } from '../../../test/support/until.js';
import type { ReportedCall } from '../src/protocol.js';
import { ProxyWorld } from './support/proxy-world.js';
import { injection, PLACEHOLDER, SANDBOX } from './support/sample-policy.js';

const USAGE = { prompt_tokens: 12, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 8 } };
const ANSWER = JSON.stringify({ model: 'm-2026', choices: [{ message: { content: 'hi' } }], usage: USAGE });
const bearer = { Authorization: `Bearer ${PLACEHOLDER}`, 'Content-Type': 'application/json' };

let world: ProxyWorld;
let url: string;

beforeEach(async () => {
  world = await ProxyWorld.start();
  const { port } = await world.startTlsHost();
  url = `https://api.example:${port}`;
  const hosts = [{ host: 'api.example', port }];
  world.allow({ injections: [injection({ hosts, model: 'openai/m' })] });
});

afterEach(async () => {
  await world.stop();
});

async function calls(): Promise<(ReportedCall & { sandbox: string })[]> {
  await world.reported();
  return world.service.calls;
}

const post = { method: 'POST', headers: bearer, body: '{"model":"m"}' };
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

describe('a call of a model', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    ['whole', (response) => response.setHeader('Content-Type', 'application/json').end(ANSWER)],
    [
      'streamed',
      (response) => {
        response.setHeader('Content-Type', 'text/event-stream');
        response.write(event({ model: 'm-2026', choices: [{ delta: { content: 'hi' } }], usage: null }));
        response.end(event({ model: 'm-2026', choices: [], usage: USAGE }) + 'data: [DONE]\n\n');
      },
    ],
    [
      'compressed though it was not asked to be',
      (response) =>
        response
          .setHeader('Content-Type', 'application/json')
          .setHeader('Content-Encoding', 'gzip')
          .end(gzipSync(ANSWER)),
    ],
  ])('is told by its answer, %s', async (_how, answer) => {
    world.answer = (_request, response) => answer(response);
    const { status } = await world.https(`${url}/v1/chat/completions`, post);
    expect([status, world.received[0]?.headers['accept-encoding']]).toEqual([200, 'identity']);
    expect(await seen(1)).toEqual([
      {
        sandbox: SANDBOX,
        number: 1,
        at: expect.any(String),
        host: 'api.example',
        model: 'openai/m',
        asked: 'm',
        answeredBy: 'm-2026',
        input: 12,
        output: 3,
        cacheRead: 8,
        cacheWrite: 0,
        cost: null,
      },
    ]);
  });

  it('is told as far as it went where the program does not wait for its end', async () => {
    world.answer = (_request, response) => {
      response.setHeader('Content-Type', 'text/event-stream');
      response.write(
        event({
          type: 'message_start',
          message: { model: 'c', usage: { input_tokens: 5, output_tokens: 1 } },
        }),
      );
    };
    const socket = await world.tls(new URL(url).host);
    const sent = world.begin(socket, `${url}/v1/messages`, post).end('{}');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    await once(response, 'data');
    response.on('error', () => undefined);
    socket.destroy();
    expect(await seen(1)).toMatchObject([{ answeredBy: 'c', input: 5, output: 1 }]);
  });

  it('is told of the credential of a secret, too, without the name of a model', async () => {
    const { port } = new URL(url);
    world.allow({ injections: [injection({ hosts: [{ host: 'api.example', port: Number(port) }] })] });
    world.answer = (_request, response) => response.end(ANSWER);
    await world.https(`${url}/v1/responses`, post);
    expect(await seen(1)).toMatchObject([{ model: null, answeredBy: 'm-2026' }]);
  });

  it('is not answered by what takes a hundred megabytes to unpack a few kilobytes', async () => {
    const params = { [constants.ZSTD_c_windowLog]: 27 };
    const mebibyte = 1024 * 1024;
    let bytes = 8 * mebibyte;
    world.answer = (_request, response) =>
      response.setHeader('Content-Encoding', 'zstd').end(zstdCompressSync(Buffer.alloc(bytes), { params }));
    expect((await world.https(`${url}/v1/responses`, post)).body).toHaveLength(bytes);
    bytes = 128 * mebibyte;
    await expect(world.https(`${url}/v1/responses`, post)).rejects.toThrow('aborted');
  });

  it('has its answer unpacked beside seven others of the sandbox, and is refused beside more', async () => {
    const ends: (() => void)[] = [];
    world.answer = (_request, response) => {
      response.setHeader('Content-Encoding', 'gzip').flushHeaders();
      ends.push(() => response.end(gzipSync(ANSWER)));
    };
    const all = Array.from({ length: 8 }, () => world.https(`${url}/v1/responses`, post));
    await until(() => ends.length === 8 && world.proxy.held['unpacking'] === 8);
    const { status, body } = await world.https(`${url}/v1/responses`, post);
    expect([status, body]).toEqual([503, expect.stringContaining('8 answers')]);
    ends.forEach((end) => end());
    expect((await Promise.all(all)).map((answer) => answer.status)).toEqual(Array.from(all, () => 200));
    await until(() => world.proxy.held['unpacking'] === 0);
  });

  it.each<[string, string, object]>([
    [
      'no value was put in',
      '/v1/chat/completions',
      { ...post, headers: { Authorization: 'Bearer of-its-own' } },
    ],
    ['its path is none of a model', '/v1/files', post],
    ['it asks for what was answered before', '/v1/responses/r', { headers: bearer }],
  ])('is none where %s', async (_why, path, sent) => {
    world.answer = (_request, response) => response.end(ANSWER);
    await world.https(`${url}${path}`, sent);
    expect(await calls()).toEqual([]);
  });

  it('passes each event on when it comes', async () => {
    const turn = Promise.withResolvers<void>();
    world.answer = (_request, response) => {
      response.setHeader('Content-Type', 'text/event-stream');
      response.write(event({ choices: [{ delta: { content: 'one' } }] }));
      void turn.promise.then(() => response.end(event({ choices: [], usage: USAGE })));
    };
    const socket = await world.tls(new URL(url).host);
    const sent = world.begin(socket, `${url}/v1/chat/completions`, post).end('{}');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const [first] = (await once(response, 'data')) as [Buffer];
    expect(first.toString()).toBe(event({ choices: [{ delta: { content: 'one' } }] }));
    turn.resolve();
    response.resume();
    await once(response, 'end');
    expect(await seen(1)).toMatchObject([{ input: 12 }]);
    socket.destroy();
  });
});

/** A call is told when its answer has ended at the proxy, which its program may know earlier. */
async function seen(count: number): Promise<ReportedCall[]> {
  await until(async () => (await calls()).length >= count);
  return await calls();
}
