import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startListening } from '../../support/start-listening.js';
import { JourneyWorld } from './support/journey-world.js';
import { message } from './support/script.js';

describe('behind a proxy', () => {
  let world: JourneyWorld;
  let proxy: Server;
  /** Where the proxy was asked to connect. */
  const asked: string[] = [];

  beforeAll(async () => {
    world = await JourneyWorld.open();
    proxy = createServer((_request, response) => response.writeHead(500).end());
    proxy.on('connect', (request, tunnel, head) => {
      asked.push(request.url ?? '');
      const upstream = connect(Number(new URL(world.llm.url).port), '127.0.0.1', () => {
        tunnel.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.write(head);
        upstream.pipe(tunnel).pipe(upstream);
      });
      upstream.on('error', () => tunnel.destroy());
      tunnel.on('error', () => upstream.destroy());
    });
    const port = await startListening(proxy);
    await world.start({ HTTP_PROXY: `http://127.0.0.1:${port}` });
  });

  afterAll(async () => {
    await world.close();
    proxy.closeAllConnections();
    proxy.close();
  });

  it('an agent reaches its model through it, and the service without it', async () => {
    const { pathname } = new URL(world.llm.url);
    const user = await world.createUser({ llm_base_url: `http://model.example${pathname}` });
    const { id } = await user.started(message('Say hello.'));
    await user.conversationIn(id, 'finished');

    expect(new Set(asked)).toEqual(new Set(['model.example:80']));
  });
});
