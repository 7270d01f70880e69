import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { chromiumProgram, openPage } from '../../clients/support/browser.js';
import { startListening } from '../../support/start-listening.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const BACKENDS = 'openhands-backends';
const PAGE = '<!DOCTYPE html><html><head><title>App</title></head><body>the application</body></html>';

export const foreignLink: Attack = {
  name: 'foreign-link',
  finding: 5,
  what: "A page from elsewhere opens Alice's web application, which is connected, with the key of Bob in the link.",
  expected: { process: held('her key stays where it is') },
  run: async (world) => {
    const program = chromiumProgram();
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-hostile-web-'));
    try {
      await writeFile(path.join(folder, 'index.html'), PAGE);
      return await world.apart(
        { environment: { WEB_APP_FOLDER: folder }, sandboxes: false },
        async (apart) => {
          const { browser, page } = await openPage(program, '');
          try {
            return await attack(apart, page);
          } finally {
            await browser.close();
          }
        },
      );
    } finally {
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  },
};

async function attack(world: HostileWorld, page: Page): Promise<{ held: boolean; seen: string }> {
  const origin = world.url.replace('127.0.0.1', 'localhost');
  const stored = (): Promise<string | null> => page.evaluate((name) => localStorage.getItem(name), BACKENDS);
  const [mine, hers] = [world.bob.client.key, world.alice.client.key];
  const fragments = [`key=${mine}`, `code=${mine}`, `code=${'A'.repeat(43)}`];

  const backend = { id: 'slipway', name: 'Slipway', kind: 'cloud', host: origin, apiKey: hers };
  const outcomes: string[] = [];
  for (const fragment of fragments) {
    const [name = ''] = fragment.split('=');
    await page.goto(origin);
    await page.evaluate(([name, value]) => localStorage.setItem(name, value), [
      BACKENDS,
      JSON.stringify([backend]),
    ] as const);
    await followFrom(page, `${origin}/#${fragment}`);
    const after = (await stored()) ?? '';
    outcomes.push(`${name}: ${after.includes(mine) ? 'replaced' : after.includes(hers) ? 'kept' : 'lost'}`);
  }
  return { held: outcomes.every((one) => one.endsWith('kept')), seen: outcomes.join(', ') };
}

/** Has a page of another origin send the browser to the address, and waits for the application. */
async function followFrom(page: Page, address: string): Promise<void> {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<script>location.href = ${JSON.stringify(address)}</script>`);
  });
  const port = await startListening(server);
  try {
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.getByText('the application').waitFor();
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
