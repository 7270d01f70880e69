import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { reservedPort } from '../../../test/support/reserved-port.js';
import { until } from '../../../test/support/until.js';
import { apiOf } from './api-of.js';
import { startBrowser, Visitor } from './visitor.js';

const PREFIX = '/slipway';
const ANSWER = 'Half of it. The rest of it.';

/** The configuration in docs/operations/recipes.md; nginx removes the prefix if `passTo` has a path. */
function nginxConfig(port: number, passTo: string): string {
  return `
    pid nginx.pid;
    error_log stderr warn;
    events {}
    http {
      access_log off;
      map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
      server {
        listen 127.0.0.1:${port};
        location ${PREFIX}/ {
          proxy_pass ${passTo};
          proxy_http_version 1.1;
          proxy_set_header Host $http_host;
          proxy_set_header Upgrade $http_upgrade;
          proxy_set_header Connection $connection_upgrade;
          proxy_buffering off;
        }
      }
    }`;
}

describe('the console below a path', () => {
  let folder: string;
  let demo: Demo;
  let browser: Browser;
  let port: number;
  let rest: PromiseWithResolvers<void>;

  let stopProxy = (): Promise<unknown> => Promise.resolve();

  async function startProxy(passTo: string): Promise<void> {
    const config = path.join(folder, 'nginx.conf');
    await writeFile(config, nginxConfig(port, passTo));
    const nginx = spawn('nginx', ['-p', folder, '-c', config, '-g', 'daemon off;'], { stdio: 'inherit' });
    const ended = once(nginx, 'exit');
    stopProxy = () => {
      nginx.kill('SIGTERM');
      return ended;
    };
    const isUp = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}${PREFIX}/health/live`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(async () => nginx.exitCode !== null || (await isUp()));
    expect(nginx.exitCode).toBeNull();
  }

  beforeAll(async () => {
    [folder, port] = await Promise.all([mkdtemp(path.join(tmpdir(), 'console-')), reservedPort()]);
    const pace = async (chunk: number): Promise<void> => (chunk < 3 ? undefined : await rest.promise);
    const environment = { PUBLIC_URL: `http://127.0.0.1:${port}${PREFIX}` };
    const script = () => ({ kind: 'answer', text: ANSWER, pace }) as const;
    [demo, browser] = await Promise.all([startDemo({ script, environment }), startBrowser()]);
    const llm = { llm_model: 'openai/scripted', llm_base_url: demo.modelUrl, llm_api_key: 'sk-demo' };
    await apiOf(demo).post('/api/v1/settings', llm);
  });

  afterEach(async () => {
    rest.resolve();
    await stopProxy();
  });

  afterAll(async () => {
    await browser.close();
    await demo.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  it.each([
    ['keeps', ''],
    ['takes off', '/'],
  ])('works behind nginx that %s the path', async (_name, below) => {
    rest = Promise.withResolvers();
    await startProxy(`${demo.url}${below}`);
    const guest = await Visitor.come(browser, `http://127.0.0.1:${port}`);
    const { page } = guest;
    const outside: string[] = [];
    const sockets: string[] = [];
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (!pathname.startsWith(`${PREFIX}/`)) {
        outside.push(pathname);
      }
    });
    page.on('websocket', (socket) => sockets.push(new URL(socket.url()).pathname));

    await page.goto(`${PREFIX}/`);
    await page.getByLabel('API key').fill(demo.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Work' }).waitFor();
    await guest.open('Conversations');
    await page.getByText('New conversation', { exact: true }).click();
    await page.getByLabel('Message').fill('Answer slowly.');
    await page.getByRole('button', { name: 'Start conversation' }).click();
    await page.getByRole('list', { name: 'Being written' }).getByText('Half of it.').waitFor();
    rest.resolve();
    await page.getByRole('log').getByText(ANSWER).waitFor();
    await page.reload();
    await page.getByRole('log').getByText(ANSWER).waitFor();
    await guest.expectSound();
    await page.goto(`${PREFIX}/docs`);
    await page.locator('.opblock').first().waitFor();

    expect(new Set(sockets.map((address) => address.split('/')[1]))).toEqual(new Set(['slipway']));
    expect(outside).toEqual([]);
    await guest.leave();
  });
});
