import type { Page } from 'playwright-core';
import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { ANSWER } from './clients-model.js';
import { REPOSITORY } from './clients-world.js';
import type { WebApp } from './web-app.js';

const SEARCH = '/api/v1/app-conversations/search';
const PROXY = '/api/cloud-proxy';
const SWITCH = 'sdk-settings-confirmation_mode';

/** An agent that has to ask in agent-canvas: one action is approved, the next one refused. */
export class CanvasConfirmations {
  constructor(
    private readonly app: WebApp,
    private readonly api: ApiClient,
  ) {}

  async approveAndReject(): Promise<void> {
    await this.app.step('confirmation mode is switched on and read back', (page) =>
      this.switchTo(page, true),
    );
    await this.app.step('an action waits for a confirmation', async (page) => {
      await this.app.goto('/');
      await page.getByText('Open Repository').first().click();
      await page.getByTestId('git-repo-dropdown').fill('storefront');
      await page.getByTestId('git-repo-dropdown-menu').getByText(REPOSITORY).click();
      await page.getByRole('button', { name: 'Confirm' }).click();
      await page.getByTestId('chat-input').fill('Make the check pass.');
      await page.getByTestId('submit-button').click();
      await page.getByTestId('action-confirm-button').waitFor();
      await this.expectResults(0, 0);
      return 'two buttons, and no action has run';
    });
    await this.app.step('it is approved, and the next one waits', async (page) => {
      const answer = await this.decide(page, 'confirm');
      await this.expectResults(1, 0);
      await page.getByTestId('action-confirm-button').waitFor();
      return answer;
    });
    await this.app.step('that one is rejected and does not run', async (page) => {
      const answer = await this.decide(page, 'reject');
      await this.expectResults(1, 1);
      await page.getByTestId('action-reject-button').waitFor({ state: 'detached' });
      return answer;
    });
    await this.app.step('the agent goes on after the rejection', async (page) => {
      await page.getByTestId('chat-input').fill('What did you change?');
      await page.getByTestId('submit-button').click();
      await page.getByText(ANSWER).first().waitFor();
      await this.expectResults(1, 1);
      return ANSWER;
    });
    await this.app.step('confirmation mode is switched off', async (page) => {
      const [conversation] = jsonList(await this.api.get(SEARCH), 'items');
      // A page of a conversation connects again when that is removed elsewhere, and says that it could not.
      await this.app.goto('/settings/verification');
      await this.api.remove(`/api/v1/app-conversations/${jsonText(conversation, 'id') ?? ''}`);
      return this.switchTo(page, false);
    });
  }

  private async switchTo(page: Page, isOn: boolean): Promise<string> {
    await this.app.goto('/settings/verification');
    const toggle = page.getByTestId(SWITCH);
    await toggle.waitFor({ state: 'attached' });
    await page.getByText('Confirmation Mode', { exact: true }).click();
    await page.getByTestId('save-button').click();
    await this.api.once(
      () => this.api.get('/api/settings'),
      (settings) => jsonAt(settings, 'confirmation_mode') === isOn,
    );
    await page.reload();
    await toggle.waitFor({ state: 'attached' });
    if ((await toggle.isChecked()) !== isOn) {
      throw new Error(`the page does not show ${isOn}`);
    }
    return `${isOn}`;
  }

  /** Clicks a button. The application has to reach the agent server through its own origin. */
  private async decide(page: Page, decision: 'confirm' | 'reject'): Promise<string> {
    const [response] = await Promise.all([
      page.waitForResponse(
        (answer) => answer.url().endsWith(PROXY) && isDecision(answer.request().postData(), decision),
      ),
      page.getByTestId(`action-${decision}-button`).click(),
    ]);
    if (!response.ok()) {
      throw new Error(`POST ${PROXY} responded ${response.status()}: ${await response.text()}`);
    }
    return `POST ${PROXY} responded ${response.status()}`;
  }

  /** Waits for as many results of commands and of refusals; there must never be more. */
  private async expectResults(commands: number, refusals: number): Promise<void> {
    const [conversation] = jsonList(await this.api.get(SEARCH), 'items');
    const id = jsonText(conversation, 'id') ?? '';
    const seen = async (): Promise<{ commands: number; refusals: number }> => ({
      commands: (await this.api.eventsOfKind(id, 'ObservationEvent')).length,
      refusals: (await this.api.eventsOfKind(id, 'UserRejectObservation')).length,
    });
    const found = await this.api.once(
      seen,
      (now) => Number(jsonAt(now, 'commands')) >= commands && Number(jsonAt(now, 'refusals')) >= refusals,
    );
    if (jsonAt(found, 'commands') !== commands || jsonAt(found, 'refusals') !== refusals) {
      throw new Error(`expected ${commands} results and ${refusals} refusals: ${JSON.stringify(found)}`);
    }
  }
}

function isDecision(body: string | null, decision: 'confirm' | 'reject'): boolean {
  const inner = parseJson(body ?? 'null');
  const isAnswer = jsonText(inner, 'path')?.endsWith('/events/respond_to_confirmation') === true;
  return isAnswer && jsonAt(inner, 'body', 'accept') === (decision === 'confirm');
}
