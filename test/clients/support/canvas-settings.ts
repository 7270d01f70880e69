import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import type { ClientsWorld } from './clients-world.js';
import type { WebApp } from './web-app.js';

const MODEL = 'openai/gpt-4o-mini';

/** Each kind of setting, saved in agent-canvas, read back there and at the API. */
export class CanvasSettings {
  constructor(
    private readonly app: WebApp,
    private readonly world: ClientsWorld,
    private readonly api: ApiClient,
  ) {}

  async saveEverything(): Promise<void> {
    await this.connectGitHosts();
    await this.saveApplication();
    await this.saveModel();
    await this.saveCondenser();
    await this.saveToolServer();
    await this.saveSecret();
  }

  private async connectGitHosts(): Promise<void> {
    await this.app.step('the link to the git hosts opens the console, signed in', async (page) => {
      await this.app.goto('/settings/app');
      const link = page.getByTestId('settings-integrations-link');
      await page.goto((await link.getAttribute('href')) ?? '');
      await page.getByRole('form', { name: 'Connection' }).waitFor();
      return new URL(page.url()).pathname;
    });
  }

  private async saveModel(): Promise<void> {
    await this.app.step('a model is stored as a profile, chosen, and read back', async (page) => {
      const { llm_api_key: key = '', llm_base_url: baseUrl = '' } = this.world.journey.modelSettings();
      await this.app.goto('/settings/llm');
      await page.getByTestId('add-llm-profile').click();
      await page.getByTestId('profile-name-input').fill('harbour');
      await page.getByTestId('sdk-section-advanced-toggle').click();
      await page.getByTestId('llm-custom-model-input').fill(MODEL);
      await page.getByTestId('base-url-input').fill(baseUrl);
      await page.getByTestId('llm-api-key-input').fill(key);
      await page.getByTestId('save-profile-btn').click();
      const row = page.getByTestId('profile-row').filter({ hasText: 'harbour' });
      await row.getByTestId('profile-menu-trigger').click();
      await page.getByTestId('profile-set-active').click();
      await this.api.once(
        () => this.api.get('/api/settings'),
        (settings) => jsonText(settings, 'llm_model') === MODEL,
      );
      await page.reload();
      await row.getByTestId('profile-active-badge').waitFor();
      return (await row.innerText()).replaceAll(/\s+/g, ' ');
    });
  }

  private async saveCondenser(): Promise<void> {
    await this.app.step('the condenser is switched off, read back, and switched on', async (page) => {
      const seen: boolean[] = [];
      for (const isOn of [false, true]) {
        await this.app.goto('/settings/condenser');
        const toggle = page.getByTestId('sdk-settings-condenser.enabled');
        await page.getByText('Enable Memory Condensation').first().click();
        await page.getByTestId('save-button').click();
        await this.api.once(
          () => this.api.get('/api/settings'),
          (settings) => jsonAt(settings, 'enable_default_condenser') === isOn,
        );
        await page.reload();
        await page.getByText('Enable Memory Condensation').first().waitFor();
        seen.push(await toggle.isChecked());
      }
      if (seen.join() !== 'false,true') {
        throw new Error(`the page shows ${seen.join(', ')}`);
      }
      return seen.join(', then ');
    });
  }

  private async saveToolServer(): Promise<void> {
    await this.app.step('an MCP server is added, listed with its key masked, and removed', async (page) => {
      const key = this.world.journey.secrets.plant('tool server key');
      await this.app.goto('/mcp');
      await page.getByTestId('mcp-add-custom-server').click();
      await page.getByTestId('server-name-input').fill('harbour');
      await page.getByTestId('url-input').fill('https://mcp.quayside.example/sse');
      await page.getByTestId('auth-mode-dropdown').click();
      await page.getByRole('option', { name: /bearer/i }).click();
      await page.getByTestId('api-key-input').fill(key);
      await page.getByTestId('submit-button').click();
      const stored = await this.api.once(
        () => this.api.get('/api/settings'),
        (settings) => jsonList(settings, 'mcp_config', 'sse_servers').length === 1,
      );
      await page.reload();
      const item = page.getByTestId('mcp-server-item').filter({ hasText: 'harbour' });
      await item.click();
      await page.getByTestId('mcp-custom-editor-delete').click();
      await page.getByTestId('confirm-button').click();
      await item.waitFor({ state: 'detached' });
      const [server] = jsonList(stored, 'mcp_config', 'sse_servers');
      return `${jsonText(server, 'url') ?? ''}, key ${jsonText(server, 'api_key') ?? 'not shown'}`;
    });
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
