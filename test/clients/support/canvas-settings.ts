import { jsonAt, jsonList, jsonText } from '../../../src/common/json-access.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import type { ClientsWorld } from './clients-world.js';
import type { WebApp } from './web-app.js';

/** Each kind of setting, saved in agent-canvas, read back there and at the API. */
export class CanvasSettings {
  constructor(
    private readonly app: WebApp,
    private readonly world: ClientsWorld,
    private readonly api: ApiClient,
  ) {}

  async saveEverything(): Promise<void> {
    await this.saveApplication();
    await this.saveSecret();
  }

  private async saveApplication(): Promise<void> {
    await this.app.step('settings of the application are saved and read back', async (page) => {
      await this.app.goto('/settings/app');
      await page.getByTestId('git-user-name-input').fill('Nadia Okafor');
      await page.getByTestId('git-user-email-input').fill('nadia@quayside.example');
      await page.getByTestId('submit-button').click();
      await this.api.once(
        () => this.api.get('/api/settings'),
        (settings) => jsonText(settings, 'git_user_email') === 'nadia@quayside.example',
      );
      await page.reload();
      await page.getByTestId('git-user-name-input').waitFor();
      return await page.getByTestId('git-user-name-input').inputValue();
    });
  }

  private async saveSecret(): Promise<void> {
    await this.app.step('a secret is stored, listed without its value, and deleted', async (page) => {
      await this.app.goto('/settings/secrets');
      await page.getByTestId('add-secret-button').click();
      await page.getByTestId('name-input').fill('DEPLOY_KEY');
      await page.getByTestId('value-input').fill(this.world.journey.secrets.plant('custom secret'));
      await page.getByTestId('description-input').fill('for the harbour');
      await page.getByTestId('submit-button').click();
      const row = page.getByTestId('secret-item').filter({ hasText: 'DEPLOY_KEY' });
      await row.waitFor();
      const stored = await this.api.get('/api/v1/secrets/search');
      const [first] = jsonList(stored, 'items');
      await row.getByTestId('delete-secret-button').click();
      await page.getByTestId('confirm-button').click();
      await row.waitFor({ state: 'detached' });
      if (jsonAt(first, 'value') !== undefined) {
        throw new Error('the value is in the answer');
      }
      return `${jsonText(first, 'name') ?? ''}: ${jsonText(first, 'description') ?? ''}`;
    });
  }
}
