import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { until } from '../../../test/support/until.js';
import type { EgressPolicy } from '../src/protocol.js';
import { UsageEventFilter, UsageRequests } from '../src/model-calls/usage-request.js';
import { ProxyWorld, proxyAuthorization } from './support/proxy-world.js';
import { CREDENTIAL, injection, PLACEHOLDER } from './support/sample-policy.js';

const USAGE = { prompt_tokens: 12, completion_tokens: 3 };
const QUESTION = ',"stream_options":{"include_usage":true}';
const BODY = '{"model":"m","stream": true,"messages":[{"role":"user","content":"{\\"stream_options\\"? é"}]}';
const ASKING = `${BODY.slice(0, -1)}${QUESTION}}`;
const bearer = { Authorization: `Bearer ${PLACEHOLDER}`, 'Content-Type': 'application/json' };
const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;
const HI = event({ choices: [{ delta: { content: 'hi' } }] });
const COUNTS = event({ choices: [], usage: USAGE });
const DONE = 'data: [DONE]\n\n';

describe('a stream of chat completions', () => {
  let world: ProxyWorld;
  let host: string;
  let url: string;

  const allow = (changes: Partial<EgressPolicy> = {}, credential = CREDENTIAL): void => {
    const hosts = [{ host: 'api.example', port: Number(new URL(url).port) }];
    world.allow({ injections: [injection({ hosts, model: 'openai/m' })], ...changes }, credential);
  };

  beforeEach(async () => {
    world = await ProxyWorld.start();
    const { port } = await world.startTlsHost();
    host = `api.example:${port}`;
    url = `https://${host}/v1/chat/completions`;
    allow();
    // As OpenAI's, which counts where it is asked to.
    world.answer = (_request, response) => {
      const isAsked = world.received.at(-1)?.body.includes('"include_usage":true') === true;
      response.setHeader('Content-Type', 'text/event-stream').end(`${HI}${isAsked ? COUNTS : ''}${DONE}`);
    };
  });

  afterEach(async () => {
    await until(() => world.proxy.held['bodies'] === 0);
    await world.stop();
  });

  const bodies = (): string[] => world.received.map(({ body }) => body);
  const post = async (body: string, headers: Record<string, string> = {}, to = url): Promise<string> =>
    (await world.https(to, { method: 'POST', headers: { ...bearer, ...headers }, body })).body;
  const inputs = async (): Promise<number[]> => {
    await world.reported();
    return world.service.calls.map(({ input }) => input);
  };

  it.each<[string, Record<string, string>]>([
    ['says its length', {}],
    ['comes in chunks', { 'Transfer-Encoding': 'chunked' }],
    ['waits to be asked for', { Expect: '100-continue', 'Content-Length': String(Buffer.byteLength(BODY)) }],
  ])(
    'is asked for its usage, of which its program hears nothing, where the body %s',
    async (_how, headers) => {
      expect(await post(BODY, headers)).toBe(HI + DONE);
      expect(bodies()).toEqual([ASKING]);
      expect(JSON.parse(ASKING)).toMatchObject({ stream: true, stream_options: { include_usage: true } });
      expect(world.received[0]?.headers['content-length']).toBe(
        'Transfer-Encoding' in headers ? undefined : String(Buffer.byteLength(ASKING)),
      );
      await until(async () => (await inputs()).length > 0);
      expect(await inputs()).toEqual([12]);
    },
  );

  it.each<[string, string]>([
    ['asks itself', '{"stream":true,"stream_options":{"include_usage":true}}'],
    ['says that it does not want it', '{"stream":true,"stream_options":{"include_usage":false}}'],
    ['is no stream', '{"model":"m","messages":[{"content":"\\"stream\\":true"}],"stream":false}'],
    ['has a stream elsewhere', '{"model":"m","more":{"stream":true}}'],
    ['is no JSON', '{"stream":true'],
    ['is a list', '[{"stream":true}]'],
    ['is empty', ''],
    ['is long', `{"stream":true,"x":"${'x'.repeat(1024 * 1024)}"}`],
  ])('is left as it is where its body %s', async (_what, body) => {
    const isAsked = body.includes('"include_usage":true');
    expect(await post(body)).toBe(`${HI}${isAsked ? COUNTS : ''}${DONE}`);
    await post(body, { 'Transfer-Encoding': 'chunked' });
    expect(bodies()).toEqual([body, body]);
  });

  it.each<[string, Record<string, string>, string]>([
    ['its body is compressed', { 'Content-Encoding': 'gzip' }, ''],
    ['its body is signed', { 'Content-Digest': 'sha-256=:x:' }, ''],
    ['its body has another form', { 'Content-Type': 'text/plain' }, ''],
    ['no value is put in', { Authorization: 'Bearer of-its-own' }, ''],
    ['it calls something else', {}, '/../responses'],
  ])('is left as it is where %s', async (_why, headers, path) => {
    const body = headers['Content-Encoding'] === undefined ? BODY : gzipSync(BODY).toString('latin1');
    const to = path === '' ? url : `https://${host}/v1/responses`;
    expect(await post(body, headers, to)).toBe(HI + DONE);
    expect(bodies()).toEqual([body]);
  });

  it.each([400, 422])(
    'is asked no more of a host that refuses the question by %i and takes the call without',
    async (refusal) => {
      const { answer } = world;
      world.answer = (incoming, response) =>
        world.received.at(-1)?.body === ASKING
          ? response.writeHead(refusal).end('stream_options: unknown')
          : answer(incoming, response);
      expect(await post(BODY)).toBe(HI + DONE);
      expect(await post(BODY)).toBe(HI + DONE);
      expect(bodies()).toEqual([ASKING, BODY, BODY]);
    },
  );

  it('is asked of other sandboxes whatever one of them has had its host refuse', async () => {
    const { answer } = world;
    // As where the host has fetched an image by then, from a server of the sandbox.
    world.answer = (incoming, response) =>
      world.received.length === 1 ? response.writeHead(400).end('no such image') : answer(incoming, response);
    await post(BODY);
    await post(BODY);
    allow({ sandbox: 'sandbox-2' }, 'other');
    const { socket } = await world.connect(host, {
      credential: null,
      headers: proxyAuthorization('other', 'sandbox-2'),
    });
    const secure = await world.handshake(socket, 'api.example');
    await world.over(secure, url, { method: 'POST', headers: bearer, body: BODY });
    secure.destroy();
    expect(bodies()).toEqual([ASKING, BODY, BODY, ASKING]);
  });

  it('is asked again where the call was wrong itself', async () => {
    world.answer = (_incoming, response) => response.writeHead(400).end('no such model');
    expect(await post(BODY)).toBe('no such model');
    expect(await post(BODY)).toBe('no such model');
    expect(bodies()).toEqual([ASKING, BODY, ASKING, BODY]);
  });

  it('is not held once its program has gone', async () => {
    const socket = await world.tls(host);
    const headers = { ...bearer, 'Content-Length': '1000' };
    world.begin(socket, url, { method: 'POST', headers }).write(BODY.slice(0, 20));
    await until(() => world.proxy.held['bodies'] === 1);
    socket.destroy();
    await until(() => world.proxy.held['bodies'] === 0);
    expect(world.received).toEqual([]);
  });

  it('goes on as it comes beside eight bodies of its sandbox that are held', async () => {
    const turn = Promise.withResolvers<void>();
    const { answer } = world;
    world.answer = (incoming, response) => void turn.promise.then(() => answer(incoming, response));
    const held = Array.from({ length: 8 }, async () => await post(BODY));
    await until(() => world.received.length === 8);
    const ninth = post(BODY);
    await until(() => world.received.length === 9);
    turn.resolve();
    await Promise.all([...held, ninth]);
    expect(bodies()).toEqual([...Array.from(held, () => ASKING), BODY]);
  });
});

describe('a body that is held', () => {
  const place = { place: 'api.example', path: '/v1/chat/completions' };
  const never = Promise.withResolvers<null>().promise;
  const begun = (): IncomingMessage & PassThrough =>
    Object.assign(new PassThrough(), { headers: { 'content-type': 'application/json' } }) as never;

  it('takes no place from another sandbox, however many come slowly', async () => {
    const usage = new UsageRequests();
    const gone = Promise.withResolvers<null>();
    const slow = Array.from({ length: 100 }, async (_, index) =>
      usage.hold({ sandbox: `slow-${index}`, ...place }, begun(), gone.promise),
    );
    const request = begun();
    request.end(BODY);
    expect(await usage.hold({ sandbox: 'other', ...place }, request, never)).toMatchObject({
      isAsking: true,
    });
    gone.reject(new Error('over'));
    await Promise.allSettled(slow);
    expect(usage.size).toBe(1);
  });

  it('goes on from its beginning where it is not whole in time', async () => {
    const usage = new UsageRequests(1);
    const request = begun();
    request.write(BODY.slice(0, 10));
    expect(await usage.hold({ sandbox: 's', ...place }, request, never)).toBeNull();
    expect(usage.size).toBe(0);
    request.end(BODY.slice(10));
    expect(await text(request)).toBe(BODY);
  });
});

describe('UsageEventFilter', () => {
  const LONG = event({ choices: [{ delta: { content: 'x'.repeat(20_000) } }] });
  const FILTERED = event({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] });
  const NULL = event({ choices: [], usage: null });

  const filtered = async (whole: string, size: number): Promise<string> => {
    const bytes = Buffer.from(whole);
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    return await text(Readable.from(parts).pipe(new UsageEventFilter()));
  };

  it.each([1, 2, 7, 4_096, 1_000_000])(
    'takes the event out that only counts, whatever its parts are: %i bytes',
    async (size) => {
      const before = `${FILTERED}: a comment\n\nevent: x\ndata: y\n\n${HI}${NULL}${LONG}`;
      expect(await filtered(before + COUNTS + DONE, size)).toBe(before + DONE);
      const withReturns = (lines: string): string => lines.replaceAll('\n', '\r\n');
      expect(await filtered(withReturns(HI + COUNTS + DONE), size)).toBe(withReturns(HI + DONE));
      expect(await filtered(`${HI}data: no end`, size)).toBe(`${HI}data: no end`);
    },
  );

  it('passes each event on when it is whole', async () => {
    const filter = new UsageEventFilter();
    filter.write(HI.slice(0, 10));
    filter.write(HI.slice(10));
    const [chunk] = await once(filter, 'data');
    expect(String(chunk)).toBe(HI);
    filter.destroy();
  });
});
