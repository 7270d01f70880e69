import { createServer } from 'node:http';
import { expect, it } from '@jest/globals';
import { startListening } from '../../../../test/support/start-listening.js';
import { connectEngine } from './engine.js';
import { GuardedContainers } from './guarded-containers.js';
import { ensureImage } from './images.js';

const VOLUMES = [
  { Name: 'slipway-known', UsageData: { Size: 7, RefCount: 1 } },
  { Name: 'slipway-unknown', UsageData: { Size: -1, RefCount: 0 } },
];

async function engineThatSays(answers: Record<string, [status: number, body: unknown]>) {
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const [status, body] = answers[`${request.method} ${path}`] ?? [404, { message: 'page not found' }];
    response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\r\n`);
  });
  const docker = connectEngine(`tcp://127.0.0.1:${await startListening(server)}`);
  return { docker, close: () => server.close().closeAllConnections() };
}

// Engine API, "Get data usage information": before 1.52, and from then on with verbose=1.
it.each([
  ['1.51', { LayersSize: 9, Volumes: VOLUMES }],
  ['1.52', { VolumeUsage: { ActiveCount: 1, TotalSize: 7, Items: VOLUMES } }],
])('reads what each volume takes from an engine with API %s', async (_, answer) => {
  const { docker, close } = await engineThatSays({ 'GET /system/df': [200, answer] });
  const containers = new GuardedContainers(docker, 'test');

  expect(await containers.measure('known')).toBe(7);
  expect(await containers.measure('unknown')).toBeNull();
  expect(await containers.measure('other')).toBeNull();
  close();
});

// The second member is announced to go (API 1.48).
it.each([
  { errorDetail: { message: 'toomanyrequests: slow down' }, error: 'toomanyrequests: slow down' },
  { errorDetail: { message: 'toomanyrequests: slow down' } },
  { error: 'toomanyrequests: slow down' },
])('says why a pull failed that had begun: %j', async (event) => {
  const { docker, close } = await engineThatSays({ 'POST /images/create': [200, event] });

  await expect(
    ensureImage(docker, { image: 'a/b:1', isOurs: false }, () => undefined, new AbortController().signal),
  ).rejects.toThrow('the image a/b:1 cannot be pulled: toomanyrequests: slow down');
  close();
});
