import { once } from 'node:events';
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { JsonBodyGuard } from './json-body.guard.js';
import { runInRequestContext } from './request-context.js';

const AT_ONCE = 8;
const ABSENT = { body: undefined };

/** Stands in for a handler: responds with what the guard made of the body. */
async function respond(
  guard: JsonBodyGuard,
  request: IncomingMessage & { body?: unknown },
  response: ServerResponse,
): Promise<void> {
  const context = new ExecutionContextHost([request, response], Object, () => undefined);
  try {
    await guard.canActivate(context);
    response.end(JSON.stringify(request.body ?? ABSENT));
  } catch (error) {
    response.statusCode = 500;
    response.end(JSON.stringify(String(error)));
  }
}

describe('JsonBodyGuard', () => {
  let guard: JsonBodyGuard;
  const arrived = new Set<IncomingMessage>();
  const server = createServer((request, response) => {
    const caller = String(request.headers['x-caller']);
    runInRequestContext({ requestId: 'test', userId: caller, caller }, () => {
      arrived.add(request);
      void respond(guard, request, response);
    });
  });

  beforeEach(async () => {
    arrived.clear();
    guard = new JsonBodyGuard({ deadlineMs: 60_000 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  /** A request whose body ends when the test says so. */
  const begin = (
    caller: string,
    method = 'POST',
  ): { finish: (rest: string) => void; answer: Promise<{ status: number; text: string }> } => {
    const { port } = server.address() as AddressInfo;
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

  it('disconnects at the deadline also those whose turn has not come', async () => {
    guard = new JsonBodyGuard({ deadlineMs: 100 });
    const answers = Array.from({ length: 3 * AT_ONCE }, () => begin('bob').answer);

    const outcomes = await Promise.allSettled(answers);
    expect(outcomes.map(({ status }) => status)).toEqual(answers.map(() => 'rejected'));
  });

  it.each(['GET', 'HEAD'])('reads no body of %s', async (method) => {
    const { status } = await begin('bob', method).answer;

    expect(status).toBe(200);
  });
});
