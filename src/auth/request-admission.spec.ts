import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import express, { type Request, type Response as Answer } from 'express';
import { Gate } from '../../test/support/gate.js';
import { startListening } from '../../test/support/start-listening.js';
import { until } from '../../test/support/until.js';
import { DomainError } from '../common/errors/domain-error.js';
import { currentRequest, requestContextMiddleware } from '@slipway/api/requests/request-context.js';
import { RequestAdmission } from './request-admission.js';

const BOBS_KEY = { 'X-Session-API-Key': 'bob' };
const BOBS_OTHER_KEY = { Authorization: 'Bearer bob-2' };
const BOBS_SESSION = { Cookie: 'slipway_session=bob' };
const BOBS_SANDBOX = { 'X-Session-API-Key': 'b'.repeat(43) };
const ALICES_KEY = { 'X-Access-Token': 'alice' };

let server: Server;
let gate: Gate;
let admission: RequestAdmission;
/** Of requests that wait for their bodies. */
let takers: (() => void)[];
/** Credentials that were looked up. */
let lookUps: string[];

/** Responds once the gate is open, with 200, or at once with why not. */
async function start(limits: {
  perMinute?: number;
  inFlight?: number;
}): Promise<(headers?: Record<string, string>, path?: string, body?: string) => Promise<Response>> {
  gate = new Gate();
  takers = [];
  lookUps = [];
  admission = new RequestAdmission({
    perMinute: 0,
    inFlight: 0,
    ...limits,
    userOf: async (key) => {
      lookUps.push(key);
      return /^(bob|alice)/.test(key) ? { id: key.split('-', 1).join() } : null;
    },
    isOurToken: (token) => token.endsWith('.ours'),
    signedInUserOf: async ({ headers: { cookie } }) => {
      lookUps.push(cookie ?? '');
      return cookie === 'slipway_session=bob' ? { id: 'bob' } : null;
    },
    isOfProxy: (key) => key === 'proxy',
    ownerOf: async (key) => {
      lookUps.push(key);
      return key.startsWith('bb') ? { userId: 'bob' } : null;
    },
  });
  const app = express();
  app.set('trust proxy', 1);
  app.use(requestContextMiddleware, (request, response) => void respond(request, response));
  server = createServer(app);
  const port = await startListening(server);
  return (headers = {}, path = '/', body) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      headers,
      ...(body !== undefined && { method: 'POST', body }),
    });
}

async function respond(request: Request, response: Answer): Promise<void> {
  try {
    await admission.admit(request, response);
    takers.push(...[currentRequest()?.takePlace ?? []].flat());
    await gate.pass();
    response.end();
  } catch (error) {
    if (!(error instanceof DomainError)) {
      throw error;
    }
    const status = error.kind === 'unavailable' ? 503 : 429;
    response.writeHead(status, { 'Retry-After': error.retryAfterSeconds ?? '' }).end(error.message);
  }
}

afterEach(() => {
  gate.open();
  server.close();
  server.closeAllConnections();
});

describe('places', () => {
  it.each<[string, number, Record<string, string>]>([
    ['a user has a quarter', 10, BOBS_KEY],
    ['a signed-in user has a quarter', 10, BOBS_SESSION],
    ['the sandboxes of a user have an eighth', 5, BOBS_SANDBOX],
    ['strangers of one address have a twentieth', 2, {}],
    ['wrong keys are those of strangers', 2, { 'X-Session-API-Key': 'mallory' }],
    ['what a proxy asks elsewhere is a stranger’s', 2, { Authorization: 'Bearer proxy' }],
    ['beside a key, a session is nothing', 2, { 'X-Session-API-Key': 'mallory', ...BOBS_SESSION }],
  ])('%s', async (_rule, places, headers) => {
    const send = await start({ inFlight: 40 });
    gate.close();
    const held = Array.from({ length: places }, () => send(headers));
    await until(() => admission.underWay === places);

    expect((await send(headers)).status).toBe(429);
    const other = send(ALICES_KEY);
    gate.open();
    expect(await Promise.all([...held, other].map(async (one) => (await one).status))).toEqual(
      Array.from({ length: places + 1 }, () => 200),
    );
    await until(() => admission.underWay === 0);
    expect((await send(headers)).status).toBe(200);
  });

  it('of egress proxies are a fifth', async () => {
    const send = await start({ inFlight: 40 });
    gate.close();
    const ask = (): Promise<Response> =>
      send({ Authorization: 'Bearer proxy' }, '/api/v1/egress-proxy/reports');
    const held = Array.from({ length: 8 }, ask);
    await until(() => admission.underWay === 8);
    expect((await ask()).status).toBe(429);
    const other = send(ALICES_KEY);
    gate.open();
    expect((await other).status).toBe(200);
    await Promise.all(held);
  });

  it.each([
    ['strangers have a tenth', '/', 2],
    ['events of hosts have a fifth', '/api/automation/v1/events/1/github', 4],
  ])('of %s, of which an address has half', async (_rule, path, places) => {
    const send = await start({ inFlight: 40 });
    gate.close();
    const from = (address: string): Promise<Response> => send({ 'X-Forwarded-For': address }, path, '');
    const held = ['192.0.2.1', '192.0.2.2'].flatMap((address) =>
      Array.from({ length: places }, () => from(address)),
    );
    await until(() => admission.underWay === 2 * places);

    expect([(await from('192.0.2.1')).status, (await from('192.0.2.3')).status]).toEqual([429, 429]);
    const other = send({}, path === '/' ? '/api/automation/v1/events/1/github' : '/', '');
    gate.open();
    expect((await other).status).toBe(200);
    await Promise.all(held);
    await until(() => admission.underWay === 0);
  });

  it('without a key are taken once the body is there', async () => {
    const send = await start({ inFlight: 40 });
    gate.close();
    const held = Array.from({ length: 5 }, () => send({}, '/', 'body'));
    await until(() => takers.length === 5);
    expect(admission.underWay).toBe(0);

    const [first, second, third] = takers;
    first?.();
    second?.();
    expect(admission.underWay).toBe(2);
    expect(() => third?.()).toThrow(expect.objectContaining({ kind: 'rate_limited' }));
    gate.open();
    await Promise.all(held);
    await until(() => admission.underWay === 0);
  });

  it('leave a user half of them whatever the sandboxes do', async () => {
    const send = await start({ inFlight: 40 });
    gate.close();
    const held = Array.from({ length: 5 }, () => send(BOBS_SANDBOX));
    await until(() => admission.underWay === 5);
    const own = Array.from({ length: 5 }, () => send(BOBS_KEY));
    await until(() => admission.underWay === 10);

    expect([(await send(BOBS_KEY)).status, (await send(BOBS_SANDBOX)).status]).toEqual([429, 429]);
    gate.open();
    await Promise.all([...held, ...own]);
  });

  it('are refused to everybody when all are taken, but to probes and streams', async () => {
    const send = await start({ inFlight: 2 });
    gate.close();
    const held = [send(BOBS_KEY), send(ALICES_KEY)];
    await until(() => admission.underWay === 2);

    const refused = await send();
    expect(refused.status).toBe(503);
    expect(['1', '2', '3']).toContain(refused.headers.get('retry-after'));
    const exempt = [send({}, '/health/live?verbose'), send(BOBS_KEY, '/api/v1/conversation/1/events/stream')];
    gate.open();
    expect(await Promise.all([...exempt, ...held].map(async (one) => (await one).status))).toEqual([
      200, 200, 200, 200,
    ]);
  });
});

describe('the rate limit', () => {
  const statuses = async (
    send: Awaited<ReturnType<typeof start>>,
    callers: Record<string, string>[],
  ): Promise<number[]> => {
    const seen: number[] = [];
    for (const headers of callers) {
      seen.push((await send(headers)).status);
    }
    return seen;
  };

  it('counts all keys and sandboxes of a user together, and nobody else', async () => {
    const send = await start({ perMinute: 3 });
    const callers = [BOBS_KEY, BOBS_OTHER_KEY, BOBS_SANDBOX, BOBS_SANDBOX, BOBS_KEY, ALICES_KEY];
    expect(await statuses(send, callers)).toEqual([200, 200, 200, 429, 429, 200]);
  });

  it('leaves a user half of it whatever the sandboxes do', async () => {
    const send = await start({ perMinute: 4 });
    const callers = [...Array.from({ length: 4 }, () => BOBS_SANDBOX), BOBS_KEY, BOBS_KEY, BOBS_KEY];
    expect(await statuses(send, callers)).toEqual([200, 200, 429, 429, 200, 200, 429]);
  });

  it('counts strangers by address, whose requests take nothing from a caller with a key', async () => {
    const send = await start({ perMinute: 2 });
    const wrong: Record<string, string> = { 'X-Access-Token': 'mallory' };
    const callers = [{}, wrong, {}, BOBS_KEY];
    expect(await statuses(send, callers)).toEqual([200, 200, 429, 200]);
    expect((await send({}, '/health')).status).toBe(200);
  });

  it('does not count the events of a git host, which has one address for all organizations', async () => {
    const send = await start({ perMinute: 1 });
    const deliver = (path: string): Promise<Response> => send({}, `/api/automation/v1/events/${path}`, '');
    const answers = [await deliver('1/github'), await deliver('2/github'), await deliver('1/github?again')];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect([(await deliver('1')).status, (await deliver('1')).status]).toEqual([200, 429]);
  });

  it('does not count what egress proxies ask, for all of their sandboxes from one address', async () => {
    const send = await start({ perMinute: 1 });
    const ask = async (key: string): Promise<number> =>
      (await send({ Authorization: `Bearer ${key}` }, '/api/v1/egress-proxy/policy')).status;
    expect([await ask('proxy'), await ask('proxy'), await ask('proxy')]).toEqual([200, 200, 200]);
    expect([await ask('mallory'), await ask('mallory')]).toEqual([200, 429]);
    expect(await ask('proxy')).toBe(200);
  });

  it('goes by the right one of several keys', async () => {
    const send = await start({ perMinute: 1 });
    expect(await statuses(send, [{}, { ...BOBS_SANDBOX, ...ALICES_KEY }, ALICES_KEY])).toEqual([
      200, 200, 200,
    ]);
    expect((await send({ 'X-Session-API-Key': 'mallory', ...BOBS_OTHER_KEY })).status).toBe(429);
  });

  it.each<[string, Record<string, string>, string, number]>([
    ['several keys', { 'X-Session-API-Key': 'mallory', 'X-Access-Token': 'eve', ...BOBS_SESSION }, '/', 1],
    ['a key like that of a sandbox', { 'X-Session-API-Key': 'm'.repeat(43), ...BOBS_SESSION }, '/', 1],
    ['a key like that of a conversation', { Authorization: `Bearer slwc_${'m'.repeat(76)}` }, '/', 1],
    ['a session', { Cookie: 'slipway_session=mallory' }, '/', 1],
    [
      'a key for an event of a host',
      { 'X-Access-Token': 'mallory' },
      '/api/automation/v1/events/1/github',
      0,
    ],
  ])('is asked after one look-up of %s that is wrong', async (_what, headers, path, most) => {
    const send = await start({ perMinute: 1 });
    await send();
    lookUps = [];
    expect((await send(headers, path, '')).status).toBe(most === 0 ? 200 : 429);
    expect(lookUps).toHaveLength(most);
  });

  it('counts each wrong key, and no right one', async () => {
    const send = await start({ perMinute: 3 });
    const wrong = { 'X-Session-API-Key': 'mallory', 'X-Access-Token': 'eve' };
    const callers = [{ ...BOBS_SANDBOX, ...ALICES_KEY }, ALICES_KEY, wrong, {}, {}, ALICES_KEY];
    expect(await statuses(send, callers)).toEqual([200, 200, 200, 200, 429, 200]);
  });

  it('says what is left', async () => {
    jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const send = await start({ perMinute: 1 });
    const [{ headers: first }, second] = [await send(BOBS_KEY), await send(BOBS_KEY)];
    jest.restoreAllMocks();
    expect(['limit', 'remaining', 'reset'].map((name) => first.get(`x-ratelimit-${name}`))).toEqual([
      '1',
      '0',
      '60',
    ]);
    expect(second.headers.get('retry-after')).toBe('60');
    expect(await second.text()).toContain('Retry-After');
  });
});
