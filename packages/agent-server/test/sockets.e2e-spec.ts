import { afterEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { DEFAULT_LIMITS } from '../src/command-line.js';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

interface TestSocket {
  socket: WebSocket;
  frames: unknown[];
  closed: Promise<number>;
}

const WITH_KEY = { 'X-Session-API-Key': SESSION_KEY };

/** Kinds of the events, without state updates. */
function kinds(frames: unknown[]): (string | null)[] {
  return frames
    .map((frame) => jsonText(frame, 'kind'))
    .filter((kind) => kind !== 'ConversationStateUpdateEvent');
}

function value(frame: unknown): unknown {
  return jsonText(frame, 'key') === 'full_state' ? jsonAt(frame, 'value', 'execution_status') : null;
}

const hasGot =
  (text: string) =>
  ({ frames }: TestSocket): boolean =>
    JSON.stringify(frames).includes(text);

function finished({ frames }: TestSocket): boolean {
  return frames.length > 1 && value(frames.at(-1)) === 'finished';
}

function logged({ frames }: TestSocket): unknown[] {
  return frames.filter((frame) => jsonText(frame, 'key') !== 'full_state');
}

describe('sockets of the agent server', () => {
  const server = useAgentServer(startTestAgentServer);
  const opened: WebSocket[] = [];

  afterEach(() => opened.splice(0).forEach((socket) => socket.terminate()));

  function open(path: string, headers: Record<string, string> = {}): TestSocket {
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/sockets/${path}`, { headers });
    const frames: unknown[] = [];
    socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString('utf8'))));
    socket.on('error', () => undefined);
    const closed = new Promise<number>((resolve) => socket.once('close', resolve));
    opened.push(socket);
    return { socket, frames, closed };
  }

  it('lets few clients wait without a key, and answers pings of all others', async () => {
    const waiting = Array.from({ length: 32 }, () => open(`events/${randomUUID()}`));
    await Promise.all(waiting.map(({ socket }) => once(socket, 'open')));
    const refused = open(`events/${randomUUID()}`);
    const [, response] = await once(refused.socket, 'unexpected-response');
    expect(response.statusCode).toBe(503);
    const withKey = open('bash-events', WITH_KEY);
    await once(withKey.socket, 'open');
    withKey.socket.ping('hello');
    const [pong] = await once(withKey.socket, 'pong');
    expect(String(pong)).toBe('hello');
    waiting.forEach(({ socket }) => socket.terminate());
    await until(async () => {
      const { socket } = open(`events/${randomUUID()}`);
      return await Promise.race([
        once(socket, 'open').then(() => true),
        once(socket, 'unexpected-response').then(() => false),
      ]);
    });
  });

  it('supports three ways to authenticate', async () => {
    const id = await server.client.start();
    const byFrame = open(`events/${id}`);
    byFrame.socket.on('open', () => {
      byFrame.socket.send(JSON.stringify({ type: 'auth', session_api_key: SESSION_KEY }));
      // A frame that follows immediately is not lost.
      byFrame.socket.send(JSON.stringify({ role: 'user', content: 'say hello' }));
    });
    const sockets = [
      open(`events/${id}?session_api_key=${SESSION_KEY}`),
      open(`events/${id.replaceAll('-', '')}`, WITH_KEY),
      byFrame,
    ];
    await until(() => sockets.every(({ frames }) => frames.length > 0));
    for (const { frames } of sockets) {
      const state = { kind: 'ConversationStateUpdateEvent', source: 'environment', key: 'full_state' };
      expect(frames[0]).toMatchObject({ ...state, value: { id } });
    }
    await server.client.untilStatus(id, 'finished');
    expect(await server.client.answers(id)).toEqual(['hello']);
  });

  it('sends new events, or the history and those, each once, to those who ask with the id of the one before', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'say hello');
    const before = await server.client.events(id);
    const since = `resend_mode=since&after_timestamp=${String(jsonAt(before[1], 'timestamp'))}`;
    const skipped = { '': before.length, 'resend_all=true': 0, 'resend_mode=all': 0, [since]: 1 };
    const clients = ['', '&frames=linked'].flatMap((form) =>
      Object.entries(skipped).map(([query, skip]) => ({
        ...open(`events/${id}?${query}${form}`, WITH_KEY),
        form: form === '' ? undefined : 'linked',
        skip,
      })),
    );
    const upgrades = await Promise.all(clients.map(async ({ socket }) => await once(socket, 'upgrade')));
    expect(upgrades.map(([response]) => response.headers['x-event-frames'])).toEqual(
      clients.map(({ form }) => form),
    );
    await until(() => clients.every(({ frames }) => frames.length > 0));
    await server.client.say(id, 'say more');
    await until(() => clients.every(finished));
    await server.client.untilStatus(id, 'finished');
    const log = await server.client.events(id);
    const links = log.map((event, index) => ({ after: jsonText(log[index - 1], 'id'), event }));
    await until(() => clients.every((client) => logged(client).length === log.length - client.skip));
    for (const client of clients) {
      const all: unknown[] = client.form === undefined ? log : links;
      expect(logged(client)).toEqual(all.slice(client.skip));
    }
  });

  it('numbers the events of a session, and goes on after any of them', async () => {
    const id = await server.client.start();
    const empty = open(`session/${id}?after_seq=-1`, WITH_KEY);
    await until(() => empty.frames.length === 2);
    expect(empty.frames).toMatchObject([
      { type: 'sync', from_seq: -1 },
      { type: 'transient', event: { key: 'full_state' } },
    ]);
    await server.client.talk(id, 'say hello');
    const log = await server.client.events(id);
    const last = log.length - 1;
    const durable = ({ frames }: TestSocket) =>
      frames.filter((frame) => jsonText(frame, 'type') === 'durable');
    const expected = log.map((event, seq) => ({ type: 'durable', seq, event }));
    const [rest, live, ...all] = ['?after_seq=1', '', '?after_seq=-1', '?after_seq=x', '?after_seq=1.5'].map(
      (query) => open(`session/${id}${query}`, WITH_KEY),
    ) as [TestSocket, TestSocket, ...TestSocket[]];
    const states = ({ frames }: TestSocket) =>
      frames.filter((frame) => jsonText(frame, 'type') === 'transient');
    await until(() => [rest, live, ...all].every((client) => states(client).length === 1));
    expect(all.map(({ frames }) => frames.slice(0, -1))).toEqual(
      all.map(() => [{ type: 'sync', from_seq: -1, through_seq: last }, ...expected]),
    );
    expect(rest.frames.slice(0, -1)).toEqual([
      { type: 'sync', from_seq: 1, through_seq: last },
      ...expected.slice(2),
    ]);
    expect(live.frames[0]).toEqual({ type: 'sync', through_seq: last });
    const caughtUp = open(`session/${id}?after_seq=${last}`, WITH_KEY);
    await until(() => caughtUp.frames.length === 2);
    expect(caughtUp.frames[0]).toEqual({ type: 'sync', from_seq: last, through_seq: last });
    live.socket.send(JSON.stringify({ role: 'user', content: 'say more' }));
    await until(async () => (await server.client.answers(id)).length === 2);
    await server.client.untilStatus(id, 'finished');
    const later = (await server.client.events(id)).slice(log.length);
    await until(
      () => durable(live).length === later.length && durable(rest).length === last - 1 + later.length,
    );
    expect(durable(live)).toEqual(
      later.map((event, index) => ({ type: 'durable', seq: log.length + index, event })),
    );
    live.socket.send('{"role":"user"}');
    await until(() => live.frames.some((frame) => jsonText(frame, 'type') === 'error'));
    expect(live.frames.at(-1)).toMatchObject({ type: 'error', code: 'InvalidMessage' });
    expect(await open(`session/${randomUUID()}`, WITH_KEY).closed).toBe(4004);
    expect(await open(`session/${id}?session_api_key=wrong`).closed).toBe(4001);
  });

  async function startWriting(agent: object = {}): Promise<string> {
    const llm = { model: 'openai/fake', api_key: 'llm-key', ...agent };
    const members = { agent: { kind: 'Agent', llm }, secrets: { TOKEN: 'xyz-sesame-street' } };
    server.engines.length = 0;
    const id = await server.client.start(members);
    await server.client.say(id, 'write It is done.');
    await until(() => typeof server.engines[0]?.showDraft === 'function');
    return id;
  }

  function write(text: string, reasoning = ''): void {
    server.engines[0]?.showDraft?.({ text, reasoning });
  }

  it('sends what the agent is writing to those who ask for it', async () => {
    const id = await startWriting();
    const others = ['session', 'events'].map((path) => open(`${path}/${id}`, WITH_KEY));
    const early = open(`session/${id}?drafts=only`, WITH_KEY);
    const got = ({ frames }: TestSocket, count: number) => until(() => frames.length >= count);
    write('', 'Hm, xyz-sesame-str');
    await got(early, 2);
    write('It took', 'Hm, xyz-sesame-street');
    await got(early, 4);
    await server.client.say(id, 'say more', false);
    write('It took o', 'Hm, xyz-sesame-street');
    await got(early, 5);
    const late = open(`session/${id}?drafts=only`, WITH_KEY);
    await got(late, 3);
    server.engines[0]?.showDraft?.(null);
    await Promise.all([got(early, 6), got(late, 4)]);
    write('It is d');
    await got(early, 8);
    server.engines[0]?.written.resolve();
    await server.client.untilStatus(id, 'finished');

    const [first, second] = [early.frames[0], early.frames[6]].map((frame) => jsonText(frame, 'item_id'));
    const item = { item_id: first, attempt: 1 };
    const anchor = { anchor_seq: 1 };
    const delta = (order: number, kind: string, content: string) => {
      return { type: 'delta', ...item, order, kind, content };
    };
    const end = { type: 'item_aborted', ...item, reason: 'discarded' };
    expect(early.frames).toEqual([
      { type: 'item_started', ...item, ...anchor },
      delta(0, 'reasoning', 'Hm, '),
      delta(1, 'reasoning', '<secret-hidden>'),
      delta(2, 'text', 'It took'),
      delta(3, 'text', ' o'),
      end,
      { type: 'item_started', item_id: second, attempt: 1, anchor_seq: 2 },
      { ...delta(0, 'text', 'It is d'), item_id: second },
    ]);
    expect(late.frames.slice(0, 4)).toEqual([
      { type: 'item_started', ...item, ...anchor },
      delta(0, 'reasoning', 'Hm, <secret-hidden>'),
      delta(1, 'text', 'It took o'),
      end,
    ]);
    expect(jsonText((await server.client.events(id, '&kind=MessageEvent')).at(-1), 'id')).toBe(second);
    await until(() => others.every(hasGot('It is done.')));
    expect(JSON.stringify(others.map(({ frames }) => frames))).not.toMatch(/item_started|StreamingDelta/);
  });

  it('sends it to all clients of an agent whose model streams, but not to the service', async () => {
    const id = await startWriting({ stream: true });
    const plain = open(`events/${id}?resend_mode=all`, WITH_KEY);
    const session = open(`session/${id}?after_seq=-1`, WITH_KEY);
    const linked = open(`events/${id}?frames=linked&resend_mode=all`, WITH_KEY);
    write('It took', 'Hm');
    await until(() => [plain, session].every(hasGot('"It took"')));
    server.engines[0]?.written.resolve();
    await server.client.untilStatus(id, 'finished');
    await until(() => [plain, session].every(hasGot('It is done.')));
    await until(() => finished(linked));

    const isDelta = (frame: unknown) => jsonText(frame, 'kind') === 'StreamingDeltaEvent';
    const identity = { id: expect.any(String), timestamp: expect.any(String) };
    const base = { kind: 'StreamingDeltaEvent', ...identity, source: 'agent' };
    expect(plain.frames.filter(isDelta)).toEqual([
      { ...base, reasoning_content: 'Hm' },
      { ...base, content: 'It took' },
    ]);
    const deltas = ['StreamingDeltaEvent', 'StreamingDeltaEvent'];
    expect(kinds(plain.frames)).toEqual(['MessageEvent', ...deltas, 'MessageEvent']);
    const types = session.frames.map((frame) => jsonText(frame, 'type') ?? '');
    const others = types.filter((type) => !['transient', 'durable'].includes(type));
    expect(others).toEqual(['sync', 'item_started', 'delta', 'delta']);
    expect(JSON.stringify(linked.frames)).not.toMatch(/item_started|StreamingDelta/);
    expect(JSON.stringify(await server.client.events(id))).not.toContain('StreamingDelta');
  });

  it('spares a slow client pieces of answers, but no events', async () => {
    const id = await startWriting({ stream: true });
    const [slow, quick] = [open(`events/${id}`, WITH_KEY), open(`events/${id}`, WITH_KEY)];
    await until(() => slow.frames.length > 0 && quick.frames.length > 0);
    slow.socket.pause();
    const pieces = ({ frames }: TestSocket) =>
      kinds(frames).filter((kind) => kind === 'StreamingDeltaEvent').length;
    for (let count = 1; count <= 5; count += 1) {
      write('-'.repeat(count * 1_500_000));
      await until(() => pieces(quick) === count);
    }
    server.engines[0]?.written.resolve();
    await server.client.untilStatus(id, 'finished');
    slow.socket.resume();
    await until(() => [slow, quick].every(finished));
    expect(pieces(slow)).toBeLessThan(5);
    expect(kinds(slow.frames).at(-1)).toBe('MessageEvent');
  });

  it('sends the full state for runs, also for one without work, and not for a message that waits for its run', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'say hello');
    const client = open(`events/${id}`, WITH_KEY);
    const states = () => client.frames.map(value).filter((status) => status !== null);
    await until(() => states().length === 1);

    await server.client.say(id, 'say more', false);
    await server.client.act(id, 'run');
    await until(() => states().length > 1 && finished(client));
    expect(states()).toEqual(['finished', 'running', 'finished']);

    await server.client.act(id, 'run');
    await until(() => states().length === 4);
    expect(states().at(-1)).toBe('finished');
  });

  it('tells clients that come after an error why it happened', async () => {
    const id = await server.client.start();
    await server.client.talk(id, 'fail for a reason', 'error');
    const failure = { code: 'EngineFailed', detail: expect.stringContaining('for a reason') };
    const late = open(`events/${id}`, WITH_KEY);
    const linked = open(`events/${id}?frames=linked`, WITH_KEY);
    const all = open(`events/${id}?resend_mode=all`, WITH_KEY);
    await until(() => late.frames.length === 2 && linked.frames.length === 1 && all.frames.length > 1);
    expect(late.frames).toMatchObject([
      { key: 'full_state', value: { execution_status: 'error', error: failure } },
      { kind: 'ServerErrorEvent', ...failure },
    ]);
    await server.client.say(id, 'say hello');
    await until(() => [late, linked, all].every(finished));
    expect(kinds(late.frames)).toEqual(['ServerErrorEvent', 'MessageEvent', 'MessageEvent']);
    expect(kinds([...linked.frames, ...all.frames])).not.toContain('ServerErrorEvent');
    expect(jsonAt(late.frames.at(-1), 'value', 'error')).toBeUndefined();
  });

  it('accepts messages, and reports invalid ones', async () => {
    const id = await server.client.start();
    const { socket, frames } = open(`events/${id}`, WITH_KEY);
    await until(() => frames.length > 0);
    socket.send('no json');
    socket.send('{"role":"assistant","content":"x"}');
    socket.send('{"type":"auth","session_api_key":"k"}');
    socket.send(JSON.stringify({ role: 'user', content: [{ type: 'text', text: 'say hello' }] }));
    await until(() => frames.some((frame) => value(frame) === 'finished'));
    expect(kinds(frames)).toEqual(['ServerErrorEvent', 'ServerErrorEvent', 'MessageEvent', 'MessageEvent']);
    const error = frames.find((frame) => jsonText(frame, 'kind') === 'ServerErrorEvent');
    expect(error).toMatchObject({
      source: 'environment',
      code: 'InvalidMessage',
      detail: expect.any(String),
    });
  });

  it.each(['//', '/sockets/events', 'http://['])('responds 404 to the address %s', async (address) => {
    const socket = connect(server.port, '127.0.0.1');
    const answer = text(socket);
    socket.end(
      `GET ${address} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    );
    expect(await answer).toMatch(/^HTTP\/1.1 40[04] /);
    expect((await server.client.send('GET', '/alive')).status).toBe(200);
  });

  it('sends the events of commands, and runs commands', async () => {
    const { socket, frames } = open('bash-events', WITH_KEY);
    await once(socket, 'open');
    socket.send(JSON.stringify({ command: 'echo hello' }));
    await until(() => frames.some((frame) => jsonNumber(frame, 'exit_code') === 0));
    expect(frames[0]).toMatchObject({ kind: 'BashCommand', command: 'echo hello' });
    expect(frames.map((frame) => jsonAt(frame, 'stdout')).join('')).toBe('hello\n');
  });

  // Those that follow have limits of their own, and so does the server from then on.

  it('closes with a code that says why', async () => {
    await server.restart({
      sockets: { ...DEFAULT_LIMITS.sockets, authTimeoutMs: 50, maxSubscribers: 1 },
    });
    const id = await server.client.start();
    const wrongFrame = open(`events/${id}`);
    wrongFrame.socket.on('open', () => wrongFrame.socket.send('{"type":"auth","session_api_key":"wrong"}'));
    const wrongHeader = open(`events/${id}`, { 'X-Session-API-Key': 'wrong' });
    const refused = [
      open(`events/${id}?session_api_key=wrong`),
      wrongHeader,
      open(`events/${id}`),
      wrongFrame,
    ];
    const unknown = [`events/${randomUUID()}`, 'events/nonsense', 'elsewhere'].map((it) =>
      open(it, WITH_KEY),
    );
    const codes = await Promise.all([...refused, ...unknown].map(({ closed }) => closed));
    expect(codes).toEqual([4001, 4001, 4001, 4001, 4004, 4004, 1006]);
    const first = open(`events/${id}`, WITH_KEY);
    await until(() => first.frames.length > 0);
    expect(await open(`events/${id}`, WITH_KEY).closed).toBe(1013);
    await server.client.send('DELETE', `/api/conversations/${id}`);
    expect(await first.closed).toBe(4004);
  });

  it('drops a client that reads nothing, without buffering anything for it', async () => {
    await server.restart({ sockets: { ...DEFAULT_LIMITS.sockets, stallMs: 50, maxSubscribers: 1 } });
    const id = await server.client.start();
    const slow = open(`events/${id}`, WITH_KEY);
    await until(() => slow.frames.length > 0);
    slow.socket.pause();
    const long = 'x'.repeat(1_000_000);
    for (let count = 0; count < 8; count += 1) {
      await server.client.say(id, long, false);
    }
    // It reads nothing until another one gets its place.
    await until(async () => {
      const next = open(`events/${id}`, WITH_KEY);
      return await Promise.race([
        once(next.socket, 'message').then(() => true),
        next.closed.then(() => false),
      ]);
    });
    slow.socket.resume();
    expect([1006, 1013]).toContain(await slow.closed);
    expect(kinds(slow.frames).length).toBeLessThan(8);
  });

  it('drops a client that does not respond to pings', async () => {
    await server.restart({ sockets: { ...DEFAULT_LIMITS.sockets, pingMs: 50 } });
    const id = await server.client.start();
    const dead = new WebSocket(`ws://127.0.0.1:${server.port}/sockets/events/${id}`, {
      headers: WITH_KEY,
      autoPong: false,
    });
    opened.push(dead);
    expect((await once(dead, 'close'))[0]).toBe(1006);
  });
});
