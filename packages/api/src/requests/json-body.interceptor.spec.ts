import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Body } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { EMPTY } from 'rxjs';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import { JsonBodyInterceptor } from './json-body.interceptor.js';
import { runInRequestContext } from './request-context.js';

const AT_ONCE = 8;
const ABSENT = { body: undefined };

class Handlers {
  post(this: void, @Body() body: unknown): unknown {
    return body;
  }

  get(this: void): unknown {
    return null;
  }
}

/** Responds with what the interceptor made of the body for the handler of the method. */
async function respond(
  interceptor: JsonBodyInterceptor,
  request: IncomingMessage & { body?: unknown },
  response: ServerResponse,
): Promise<void> {
  const handler = request.method === 'POST' ? Handlers.prototype.post : Handlers.prototype.get;
  const context = new ExecutionContextHost([request, response], Handlers, handler);
  try {
    await interceptor.intercept(context, { handle: () => EMPTY });
    response.end(JSON.stringify(request.body ?? ABSENT));
  } catch (error) {
    response.statusCode = 500;
    response.end(JSON.stringify(String(error)));
  }
}

describe('JsonBodyInterceptor', () => {
  let interceptor: JsonBodyInterceptor;
  const arrived = new Set<IncomingMessage>();
  let isKeyless: boolean;
  let placed: string[];
  let port: number;
  const server = createServer((request, response) => {
    const caller = String(request.headers['x-caller']);
    const context = { requestId: 'test', ...(isKeyless ? { address: caller } : { userId: caller, caller }) };
    runInRequestContext({ ...context, takePlace: () => placed.push(caller) }, () => {
      arrived.add(request);
      void respond(interceptor, request, response);
    });
  });

  beforeEach(async () => {
    arrived.clear();
    isKeyless = false;
    placed = [];
    interceptor = new JsonBodyInterceptor({ deadlineMs: 60_000 });
    port = await startListening(server);
  });

  afterEach(async () => {
    await stopServer(server);
  });

  /** A request whose body ends when the test says so. */
  const begin = (
    caller: string,
    method = 'POST',
  ): { finish: (rest: string) => void; answer: Promise<{ status: number; text: string }> } => {
    const outgoing = httpRequest({
      port,
      host: '127.0.0.1',
      method,
      agent: false,
      headers: { 'X-Caller': caller, 'Content-Type': 'application/json', 'Content-Length': '5' },
    });
    outgoing.on('error', () => undefined);
    outgoing.write('["');
    const answer = once(outgoing, 'response').then(async ([response]: IncomingMessage[]) => {
      const chunks: unknown[] = [];
      for await (const chunk of response ?? []) {
        chunks.push(chunk);
      }
      return { status: response?.statusCode ?? 0, text: chunks.map(String).join('') };
    });
    answer.catch(() => undefined);
    return { finish: (rest) => void outgoing.end(rest), answer };
  };

  const untilArrived = async (count: number): Promise<void> => {
    while (arrived.size < count) {
      await once(server, 'request');
    }
  };

  it('lets slow bodies of one caller delay only the same caller', async () => {
    const slow = Array.from({ length: AT_ONCE }, () => begin('bob'));
    await untilArrived(AT_ONCE);
    const next = begin('bob');
    next.finish('b"]');
    await untilArrived(AT_ONCE + 1);
    let isAnswered = false;
    void next.answer.then(() => (isAnswered = true));
    const other = begin('alice');
    other.finish('a"]');

    expect(await other.answer).toEqual({ status: 200, text: '["a"]' });
    expect(isAnswered).toBe(false);
    slow[0]?.finish('s"]');
    expect(await next.answer).toEqual({ status: 200, text: '["b"]' });
  });

  it('lets no body without a key wait for those of others, which take no place either', async () => {
    isKeyless = true;
    Array.from({ length: 3 * AT_ONCE }, () => begin('mallory'));
    await untilArrived(3 * AT_ONCE);
    const same = begin('mallory');
    same.finish('m"]');

    expect(await same.answer).toEqual({ status: 200, text: '["m"]' });
    expect(placed).toEqual(['mallory']);
  });

  it('gives up the oldest body of the address that has most, once too many without a key are awaited', async () => {
    isKeyless = true;
    const first = begin('git host');
    await untilArrived(1);
    const [oldest, ...others] = Array.from({ length: 100 }, () => begin('mallory'));
    await untilArrived(101);

    await expect(oldest?.answer).rejects.toThrow('socket hang up');
    others[0]?.finish('m"]');
    first.finish('h"]');
    expect(await others[0]?.answer).toEqual({ status: 200, text: '["m"]' });
    expect(await first.answer).toEqual({ status: 200, text: '["h"]' });
  });

  it('takes the addresses of one IPv6 network for one', async () => {
    isKeyless = true;
    const first = begin('192.0.2.1');
    await untilArrived(1);
    const [oldest] = Array.from({ length: 100 }, (_none, index) => begin(`2001:db8:1:2::${index + 1}`));
    await untilArrived(101);

    await expect(oldest?.answer).rejects.toThrow('socket hang up');
    first.finish('h"]');
    expect(await first.answer).toEqual({ status: 200, text: '["h"]' });
  });

  it('awaits small bodies for a shorter time', async () => {
    interceptor = new JsonBodyInterceptor({ bytes: 2_048, deadlineMs: 600_000 });
    await expect(begin('bob').answer).rejects.toThrow('socket hang up');
  });

  it('disconnects at the deadline also those whose turn has not come', async () => {
    interceptor = new JsonBodyInterceptor({ deadlineMs: 100 });
    const answers = Array.from({ length: 3 * AT_ONCE }, () => begin('bob').answer);

    const outcomes = await Promise.allSettled(answers);
    expect(outcomes.map(({ status }) => status)).toEqual(answers.map(() => 'rejected'));
  });

  it.each(['GET', 'HEAD'])('reads no body of %s', async (method) => {
    const { status } = await begin('bob', method).answer;

    expect(status).toBe(200);
  });
});
