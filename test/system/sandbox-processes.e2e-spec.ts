import { once } from 'node:events';
import { get } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import {
  type ProcessHarness,
  processHarness,
} from '../../packages/sandboxes/src/process/process.sandbox-backend.harness.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { SandboxClient } from '../support/sandbox-client.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { until } from '../support/until.js';

/** The service with real processes: what the scripted machine only pretends. */
describe('sandboxes as processes', () => {
  let harness: ProcessHarness;
  let app: TestApp;
  let me: SandboxesClient;

  beforeAll(async () => {
    harness = await processHarness('auto');
    app = await createTestApp({ ALLOW_UNSANDBOXED: 'true' }, undefined, { sandboxBackend: harness.backend });
    me = new SandboxesClient(app.url, app.user);
  });

  afterAll(async () => {
    await app.close();
    await harness.close();
  });

  async function inside(id: string, from: TestApp = app): Promise<SandboxClient> {
    const target = await from.app.get(RunningSandboxQueries).target(id);
    if (!target) {
      throw new Error(`${id} does not run`);
    }
    return new SandboxClient(target.address, target.sessionKey);
  }

  it('show what runs in them at an address that stays the same', async () => {
    const { id } = await me.running();
    const page = async () => {
      const running = await me.reach(id, 'RUNNING');
      const link = new URL(jsonText(jsonList(running, 'exposed_urls')[1], 'url') ?? '');
      const pages = `require('http').createServer((_, answer) => answer.end('page')).listen(process.env.WORKER_1)`;
      // Ended with the sandbox.
      (await inside(id)).run(`node -e "${pages}"`).catch(() => undefined);
      await until(async () => (await throughService(link)) === 'page');
      return link;
    };
    await me.reach(id, 'RUNNING');
    expect(await ports(id)).toMatchObject([{ name: 'WORKER_1', listening: false }, { listening: false }]);
    const before = await page();
    expect(await ports(id)).toMatchObject([{ url: before.href, listening: true }, { listening: false }]);
    await me.pause(id);
    await me.reach(id, 'PAUSED');
    await me.resume(id);

    const after = await page();
    expect(after.origin).toBe(before.origin);
    // The token goes with the session key.
    expect(after.search).not.toBe(before.search);
    await me.remove(id);
  });

  const ports = async (id: string) => (await me.call<unknown>('GET', `/${id}/ports`)).body;

  /** Whatever the host name resolves to here. */
  async function throughService({ host, pathname, search }: URL): Promise<string> {
    const request = get(`${app.url}${pathname}${search}`, { headers: { host } });
    const [response] = await once(request, 'response');
    let text = '';
    for await (const chunk of response) {
      text += String(chunk);
    }
    return text;
  }

  it('listen at the address of the machine where other machines have to reach them', async () => {
    const elsewhere = await processHarness('auto', { listenAddress: '127.0.0.2' });
    const reachable = await createTestApp({}, undefined, { sandboxBackend: elsewhere.backend });
    try {
      const { id } = await new SandboxesClient(reachable.url, reachable.user).running();
      const client = await inside(id, reachable);

      expect(client.address).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
      expect(await client.isAlive()).toBe(true);
    } finally {
      await reachable.close();
      await elsewhere.close();
    }
  });
});
