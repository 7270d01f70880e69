import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { connectEngine } from './connect-engine.js';
import { inTime } from './engine-deadline.js';

describe('inTime', () => {
  it.each([
    ['answers nothing', false],
    ['stops in the middle of an answer', true],
  ])('does not wait for ever for an engine that %s', async (_, begins) => {
    const engine = createServer((_request, response) => {
      if (begins) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"NCPU":');
      }
    }).listen(0, '127.0.0.1');
    await once(engine, 'listening');
    const docker = connectEngine(`tcp://127.0.0.1:${(engine.address() as AddressInfo).port}`);

    await expect(inTime(docker.info(), 20)).rejects.toThrow('the Docker engine did not answer within 0.02 s');
    engine.closeAllConnections();
    engine.close();
  });

  it('hands on what comes in time, failures too', async () => {
    await expect(inTime(Promise.resolve(1))).resolves.toBe(1);
    await expect(inTime(Promise.reject(new Error('no')))).rejects.toThrow('no');
  });
});
