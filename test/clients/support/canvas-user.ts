import type { Page } from 'playwright-core';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { CanvasConfirmations } from './canvas-confirmations.js';
import { CanvasConversation } from './canvas-conversation.js';
import { CanvasSettings } from './canvas-settings.js';
import type { ClientsWorld } from './clients-world.js';
import type { WebApp } from './web-app.js';

const PAGES = [
  '/settings',
  '/settings/agents',
  '/settings/app',
  '/settings/condenser',
  '/settings/verification',
  '/settings/secrets',
  '/settings/agent-context',
  '/customize',
  '/mcp',
  '/plugins',
  '/skills',
  '/automations',
  '/conversations',
];
/** What the application shows where it has nothing. */
const BROKEN = /404 Not Found|something went wrong|schema unavailable|failed to load/i;

/** What a user does with agent-canvas, from the first page on; a model and a git host come once every page was seen. */
export class CanvasUser {
  constructor(
    private readonly app: WebApp,
    private readonly world: ClientsWorld,
    private readonly api: ApiClient,
  ) {}

  async doEverything(address: string): Promise<void> {
    await this.arrive(address);
    await this.lookAtEveryPage();
    await this.world.settle(this.api);
    await new CanvasSettings(this.app, this.world, this.api).saveEverything();
    await new CanvasConversation(this.app, this.api).fromStartToEnd();
    await new CanvasConfirmations(this.app, this.api).approveAndReject();
  }

  private async arrive(address: string): Promise<void> {
    await this.app.step('the first page is connected', async (page) => {
      await this.app.goto(address);
      // The welcome begins with the backend only where that is not connected.
      await page.getByText('Choose your agent').waitFor();
      return 'the welcome begins with the choice of an agent';
    });
    await this.app.step('the welcome is skipped', async (page) => {
      await page.getByText('Skip for now').click();
      await page.getByTestId('chat-input').waitFor();
      return 'an input for the first message';
    });
  }

  private async lookAtEveryPage(): Promise<void> {
    const before = await allSettings(this.api);
    for (const address of PAGES) {
      await this.app.step(`the page ${address}`, async (page) => {
        await this.app.goto(address);
        const text = await contentOf(page);
        if (BROKEN.test(text)) {
          throw new Error(text.slice(0, 200));
        }
        return text.slice(0, 80);
      });
    }
    await this.app.step('looking at every page has changed no setting', async () => {
      const after = await allSettings(this.api);
      if (after !== before) {
        throw new Error(`before: ${before}; after: ${after}`);
      }
      return `${before.length} characters as before`;
    });
  }
}

/** What stands beside the application's own navigation, once nothing more is asked for. */
async function contentOf(page: Page): Promise<string> {
  await page.waitForLoadState('networkidle');
  const main = page.locator('main').first();
  return (await ((await main.count()) > 0 ? main : page.locator('body')).innerText()).trim();
}

async function allSettings(api: ApiClient): Promise<string> {
  const addresses = [
    '/api/settings',
    '/api/v1/settings',
    '/api/v1/settings/profiles',
    '/api/v1/secrets/search',
  ];
  const answers = await Promise.all(addresses.map(async (address) => api.send('GET', address)));
  // Errors have an id of their own each.
  return JSON.stringify(answers, (name, value: unknown) => (name === 'request_id' ? undefined : value));
}
