import type { Page } from 'playwright-core';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import type { ApiClient, Json } from '../../system/journeys/support/api-client.js';
import type { WebApp } from './web-app.js';

const PATH = '/api/automation/v1';
const NAME = 'Morning triage';
const SCHEDULE = '0 9 * * 1-5';
/** What the application writes when it exports an automation. */
const FILE = {
  version: 1,
  kind: 'automation',
  spec: {
    name: NAME,
    prompt: 'Make the check pass.',
    trigger: { type: 'cron', schedule: SCHEDULE, timezone: 'Europe/Berlin' },
    enabled: true,
  },
};

/** What a user does with automations in agent-canvas, which makes one from a file by the preset for prompts. */
export class CanvasAutomations {
  constructor(
    private readonly app: WebApp,
    private readonly api: ApiClient,
  ) {}

  async fromImportToDeletion(): Promise<void> {
    await this.app.step('the welcome is skipped', async (page) => {
      await this.app.goto('/');
      await page.getByText('Skip for now').click();
      await page.getByTestId('chat-input').waitFor();
      return 'an input for the first message';
    });
    await this.import();
    await this.turn('on', 'ACTIVE');
    await this.runNow();
    await this.turn('off', 'INACTIVE');
    await this.remove();
  }

  private async import(): Promise<void> {
    await this.app.step('an automation is made from a file, as a preset for prompts', async (page) => {
      await this.app.goto('/automations');
      await page.getByTestId('automations-add-automation').click();
      await page.getByTestId('automations-import-automation').click();
      const buffer = Buffer.from(JSON.stringify(FILE));
      const file = { name: 'triage.automation.json', mimeType: 'application/json', buffer };
      await page.locator('input[type=file]').last().setInputFiles(file);
      await page.getByTestId('import-automation-confirm').click();
      const made = await this.once((automation) => jsonText(automation, 'trigger', 'schedule') === SCHEDULE);
      return `${jsonText(made, 'name') ?? ''}: ${jsonText(made, 'state') ?? ''}`;
    });
    await this.app.step('it is listed', async (page) => {
      await this.open(page);
      return (await page.getByText(NAME).first().innerText()).trim();
    });
  }

  private async turn(word: 'on' | 'off', state: string): Promise<void> {
    await this.app.step(`it is turned ${word}`, async (page) => {
      await this.open(page);
      await this.choose(page, `Turn ${word}`);
      const dialog = page.getByText(`Turn ${word} "${NAME}"?`, { exact: false }).first();
      const turned = this.once((automation) => jsonText(automation, 'state') === state);
      await Promise.race([turned, dialog.waitFor()]);
      if (word === 'off' && (await dialog.isVisible())) {
        await page.getByRole('button', { name: 'Turn off', exact: true }).last().click();
      }
      await turned;
      return state;
    });
  }

  private async runNow(): Promise<void> {
    await this.app.step('it runs now, and its run is shown with its end', async (page) => {
      await this.open(page);
      await this.choose(page, 'Run now');
      const id = jsonText(await this.once(() => true), 'id') ?? '';
      await this.api.once(
        () => this.api.get(`${PATH}/${id}/runs`),
        (found) => jsonText(jsonList(found, 'runs')[0], 'status') === 'COMPLETED',
      );
      await this.app.goto(`/automations/${id}`);
      await page.getByTestId('automation-activity-log').waitFor();
      await page.getByText('Successful').first().waitFor();
      return (await page.getByTestId('automation-activity-log').innerText()).replaceAll(/\s+/g, ' ');
    });
  }

  private async remove(): Promise<void> {
    await this.app.step('it is deleted', async (page) => {
      await this.open(page);
      await this.choose(page, 'Delete');
      await page.getByText(`Delete "${NAME}"?`).waitFor();
      await page.getByRole('button', { name: 'Delete', exact: true }).last().click();
      await this.api.once(
        () => this.api.get(PATH),
        (found) => jsonAt(found, 'total') === 0,
      );
      return 'none is left';
    });
  }

  private async open(page: Page): Promise<void> {
    await this.app.goto('/automations');
    await page.getByText(NAME).first().waitFor();
  }

  private async choose(page: Page, action: string): Promise<void> {
    await page.getByRole('button', { name: 'Automation actions' }).first().click();
    await page.getByText(action, { exact: true }).first().click();
  }

  /** The only automation, once it is as expected. */
  private async once(condition: (automation: Json) => boolean): Promise<Json> {
    const found = await this.api.once(
      () => this.api.get(PATH),
      (page) => jsonList(page, 'automations').some(condition),
    );
    return jsonList(found, 'automations')[0];
  }
}
