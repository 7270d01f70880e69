import { jsonList, jsonText } from '../../../src/common/json-access.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { ANSWER, DONE, HANG } from './clients-model.js';
import { type ClientsWorld, REPOSITORY } from './clients-world.js';
import type { WebApp } from './web-app.js';

const PAGES = [
  '/settings',
  '/settings/llm',
  '/settings/agents',
  '/settings/app',
  '/settings/condenser',
  '/settings/verification',
  '/settings/secrets',
  '/settings/agent-context',
  '/settings/skills',
  '/settings/mcp',
  '/customize',
  '/mcp',
  '/plugins',
  '/skills',
  '/automations',
  '/conversations',
];

/** What somebody does with agent-canvas, page by page. */
export class CanvasUser {
  constructor(
    private readonly app: WebApp,
    private readonly world: ClientsWorld,
    private readonly api: ApiClient,
  ) {}

  async arrive(): Promise<void> {
    await this.app.step('the first page is connected', async (page) => {
      await this.app.goto('/');
      await page.getByText('Connected', { exact: true }).first().waitFor();
      return 'Connected';
    });
    await this.app.step('the welcome is skipped', async (page) => {
      await page.getByText('Skip for now').click();
      await page.getByTestId('chat-input').waitFor();
      return 'an input for the first message';
    });
  }

  async lookAtEveryPage(): Promise<void> {
    for (const address of PAGES) {
      await this.app.step(`the page ${address}`, async (page) => {
        await this.app.goto(address);
        await page.waitForLoadState('networkidle');
        const text = await page.locator('body').innerText();
        if (await page.getByTestId('sdk-schema-unavailable').isVisible()) {
          throw new Error('it says that the schema of the settings is unavailable');
        }
        return text.slice(0, 120);
      });
    }
  }

  async converse(): Promise<void> {
    await this.app.step('a repository is picked', async (page) => {
      await this.app.goto('/');
      await page.getByTestId('new-conversation-button').first().click();
      await page.locator(`[data-repo-name="${REPOSITORY}"]`).click();
      await page.waitForURL(/\/conversations\/[0-9a-f-]{32,}/);
      return REPOSITORY;
    });
    await this.app.step('a message is answered with live events', async (page) => {
      await page.getByTestId('chat-input').fill('Make the check pass.');
      await page.getByTestId('submit-button').click();
      await page.getByText(DONE).first().waitFor({ timeout: 30_000 });
      return DONE;
    });
    await this.app.step('stop while the model thinks', async (page) => {
      await page.getByTestId('chat-input').fill(`Please ${HANG}.`);
      await page.getByTestId('submit-button').click();
      await page.getByTestId('stop-button').click();
      return 'the stop button was pressed';
    });
    await this.app.step('go on', async (page) => {
      await page.getByTestId('chat-input').fill('What did you change?');
      await page.getByTestId('submit-button').click();
      await page.getByText(ANSWER).first().waitFor();
      return ANSWER;
    });
    await this.app.step('the conversation is there', async () => {
      const page = await this.api.get('/api/v1/app-conversations/search');
      const [first] = jsonList(page, 'items');
      return `${jsonText(first, 'title') ?? 'none'} of ${this.world.url === '' ? '' : 'this service'}`;
    });
  }
}
