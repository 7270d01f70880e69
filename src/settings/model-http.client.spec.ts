import { expect, it } from '@jest/globals';
import { parseConfig } from '../config/load-config.js';
import { createModelHttpClient } from './model-http.client.js';

it.each([
  ['localhost:1', 'http://127.0.0.1:1/v1'],
  ['127.0.0.1:1', 'http://localhost:1/v1'],
])('reaches the port of this machine that %s opens to agents at %s, as they do', async (opened, url) => {
  const client = createModelHttpClient(parseConfig({ SANDBOX_NETWORK_ALLOW: opened }, false));
  await expect(client.fetch(url)).rejects.toMatchObject({ reason: 'network' });
});
