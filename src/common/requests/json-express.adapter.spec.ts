import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import { JsonExpressAdapter } from './json-express.adapter.js';

interface Answer {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: string;
}

interface Case {
  body: unknown;
  status?: number;
  method?: string;
  type?: string;
  headers?: Record<string, string>;
}

const BODIES: [string, Case][] = [
  ['an object', { body: { text: 'größer', list: [1, null] } }],
  ['a list', { body: [{ a: 1 }], status: 201 }],
  ['a large object', { body: { text: 'é'.repeat(40_000) } }],
  ['a HEAD request', { body: { a: 1 }, method: 'HEAD' }],
  ['nothing', { body: undefined }],
  ['null', { body: null }],
  ['a text', { body: 'text' }],
  ['a number', { body: 5 }],
  ['an error', { body: new Error('told to nobody'), status: 500 }],
  ['a type of its own', { body: { a: 1 }, type: 'application/problem+json' }],
  ['no content', { body: { a: 1 }, status: 204 }],
  ['a client that has it', { body: { a: 1 }, headers: { 'if-none-match': '*' } }],
];

/** The same route of two applications, one for each adapter. */
describe('JsonExpressAdapter', () => {
  const servers: Server[] = [];
  const current: { case: Case } = { case: { body: null } };

  beforeAll(async () => {
    for (const adapter of [new ExpressAdapter(), new JsonExpressAdapter()]) {
      const app = adapter.getInstance();
      app.set('etag', false);
      app.use((_request: Request, response: Response) => {
        const { body, status, type } = current.case;
        if (type !== undefined) {
          response.setHeader('Content-Type', type);
        }
        adapter.reply(response, body, status ?? 200);
      });
      const server = createServer(app);
      servers.push(server);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    }
  });

  afterAll(() => servers.forEach((server) => server.close()));

  it.each(BODIES)('answers with %s as Express does', async (_what, given) => {
    current.case = given;

    const [express, ours] = await Promise.all(servers.map((server) => ask(server, given)));

    expect(ours).toEqual(express);
  });
});

async function ask(server: Server, { method = 'GET', headers = {} }: Case): Promise<Answer> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', method, headers, agent: false }, (response) => {
      const { date: _date, ...others } = response.headers;
      buffer(response).then(
        (body) => resolve({ status: response.statusCode, headers: others, body: body.toString('utf8') }),
        reject,
      );
    });
    sent.on('error', reject).end();
  });
}
