import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { text } from 'node:stream/consumers';
import { connect } from 'node:net';
import { createTestApp, type TestApp } from '../support/create-test-app.js';

const PATHS = ['/server_info', '/nowhere', '/health/live', '/api/settings', '/openapi.json', '/server_info'];

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

it('answers each of the requests that a client sends ahead, in their order', async () => {
  const { host, hostname, port } = new URL(app.url);
  const socket = connect(Number(port), hostname);
  const requests = PATHS.map((path, index) => {
    const last = index === PATHS.length - 1 ? 'Connection: close\r\n' : '';
    return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${last}\r\n`;
  });
  socket.write(requests.join(''));

  const statuses = (await text(socket)).match(/(?<=HTTP\/1\.1 )\d{3}/g);
  expect(statuses).toEqual(['200', '404', '200', '401', '200', '200']);
});
