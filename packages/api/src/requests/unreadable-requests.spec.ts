import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startListening } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import { answerUnreadableRequests } from './unreadable-requests.js';

const HEAD = 'GET / HTTP/1.1\r\nHost: here\r\n';

let server: Server;

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

/** Sends the texts, each once the server has sent what is expected after the one before it; returns all that it sent. */
async function send(texts: { text: string; until: string }[], respond: RequestListener): Promise<string> {
  server = createServer(respond);
  answerUnreadableRequests(server);
  const client = connect(await startListening(server));
  let received = '';
  client.on('data', (data) => {
    received += data.toString();
  });
  // What the server has not read when it closes comes back as a reset.
  client.on('error', () => undefined);
  const closed = once(client, 'close');
  for (const { text, until: expected } of texts) {
    client.write(text);
    await until(() => received.includes(expected));
  }
  await closed;
  return received;
}

describe('answerUnreadableRequests', () => {
  it.each([
    ['a method that nobody knows', 'FOO / HTTP/1.1\r\nHost: here\r\n\r\n', 400, 'Check its method'],
    ['a length that is no number', `${HEAD}Content-Length: abc\r\n\r\n`, 400, 'Check its method'],
    [
      'headers that are too long',
      `${HEAD}X-Long: ${'x'.repeat(65_536)}\r\n\r\n`,
      431,
      'may have 65536 bytes',
    ],
  ])('says what is wrong with %s', async (_what, text, status, detail) => {
    const received = await send([{ text, until: detail }], (_request, response) => response.end('ok'));

    const [head = '', body = ''] = received.split('\r\n\r\n');

    expect(head).toContain(`HTTP/1.1 ${status} `);
    expect(JSON.parse(body)).toMatchObject({ status, detail: expect.stringContaining(detail) });
  });

  it('reads the cookies and tokens that a proxy adds, of more than 16 KiB together', async () => {
    const cookies = Array.from({ length: 12 }, (_, part) => `_oauth2_proxy_${part}=${'x'.repeat(4_000)}`);
    const text = `${HEAD}Connection: close\r\nCookie: ${cookies.join('; ')}\r\n\r\n`;
    const received = await send([{ text, until: 'read' }], ({ headers }, response) =>
      response.end(`read ${headers.cookie?.length}`),
    );
    expect(received).toContain(`read ${cookies.join('; ').length}`);
  });

  it('answers on a connection whose requests before have their responses', async () => {
    const received = await send(
      [
        { text: `${HEAD}\r\n`, until: 'first' },
        { text: 'nonsense\r\n\r\n', until: 'Check its method' },
      ],
      (_request, response) => response.end('first'),
    );

    expect(received).toContain('HTTP/1.1 400 Bad Request');
  });

  it('adds nothing to a response that has begun', async () => {
    const received = await send(
      [
        { text: `${HEAD}\r\n`, until: 'begun' },
        { text: 'nonsense\r\n\r\n', until: '' },
      ],
      (_request, response) => response.write('begun'),
    );

    expect(received).not.toContain('400');
  });
});
