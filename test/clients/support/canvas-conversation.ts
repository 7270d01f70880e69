import type { Page } from 'playwright-core';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { ANSWER, DONE, HANG, REFUSAL, REFUSE } from './clients-model.js';
import { REPOSITORY } from './clients-world.js';
import type { WebApp } from './web-app.js';

const SEARCH = '/api/v1/app-conversations/search';

/** A conversation in agent-canvas, from the repository that it is about to its end. */
export class CanvasConversation {
  constructor(
    private readonly app: WebApp,
    private readonly api: ApiClient,
  ) {}

  async fromStartToEnd(): Promise<void> {
    await this.app.step('a repository is picked', async (page) => {
      await this.app.goto('/');
      await page.getByText('Open Repository').first().click();
      await page.getByTestId('git-repo-dropdown').fill('storefront');
      await page.getByTestId('git-repo-dropdown-menu').getByText(REPOSITORY).click();
      await page.getByRole('button', { name: 'Confirm' }).click();
      return REPOSITORY;
    });
    await this.app.step('a message is answered with live events', async (page) => {
      await page.getByTestId('chat-input').fill('Make the check pass.');
      await page.getByTestId('submit-button').click();
      await page.getByText(DONE).first().waitFor();
      return DONE;
    });
    await this.app.step('the files of the conversation are listed and read', async (page) => {
      // The list may be from before the agent's work. With a backend of the hosted kind its refresh button asks for nothing,
      // but a new page does.
      await page.reload();
      await page.getByText(DONE).first().waitFor();
      await page.getByTestId('right-panel-toggle').click();
      // A click on the chosen tab would close the panel.
      await page.getByTestId('file-tree-file-NOTES.md').click();
      await page.getByText('Two tries.').first().waitFor();
      return 'NOTES.md: Two tries.';
    });
    await this.app.step('its changes and commits are shown', async (page) => {
      await page.getByTestId('conversation-tab-commits').click();
      await page.getByTestId('uncommitted-changes-row-toggle').click();
      await page.getByText('lookup.sh').first().waitFor();
      await page.getByText('test: a commit').first().waitFor();
      const count = await page.getByTestId('uncommitted-changes-count').innerText();
      await this.app.shoot('conversation');
      await page.getByTestId('right-panel-toggle').click();
      return count;
    });
    await this.app.step('stop while the model thinks', async (page) => {
      await page.getByTestId('chat-input').fill(`Please ${HANG}.`);
      await page.getByTestId('submit-button').click();
      const connected = reconnection(page);
      await page.getByTestId('stop-button').click();
      const stopped = await this.api.once(
        async () => jsonList(await this.api.get(SEARCH), 'items')[0],
        (first) => jsonText(first, 'execution_status') === 'paused',
      );
      await connected;
      return jsonText(stopped, 'execution_status') ?? '';
    });
    await this.app.step('go on', async (page) => {
      await page.getByTestId('chat-input').fill('What did you change?');
      await page.getByTestId('submit-button').click();
      await page.getByText(ANSWER).first().waitFor();
      return ANSWER;
    });
    await this.app.step('a refused key shows what its provider says', async (page) => {
      await page.getByTestId('chat-input').fill(`Please ${REFUSE}.`);
      await page.getByTestId('submit-button').click();
      await page.getByText(REFUSAL).first().waitFor();
      // The page takes the error from the history now, and shows none of those.
      await page.reload();
      await page.getByText(REFUSAL).first().waitFor();
      return REFUSAL;
    });
    await this.app.step('the conversation is deleted', async (page) => {
      await page.getByTestId('ellipsis-button').filter({ visible: true }).first().click();
      await page.getByTestId('delete-button').first().click();
      await page.getByRole('button', { name: 'Confirm Delete' }).click();
      await this.api.once(
        async () => jsonList(await this.api.get(SEARCH), 'items').length,
        (count) => count === 0,
      );
      await page.getByText('No conversations found').first().waitFor();
      return 'it is in no list any more';
    });
  }
}

/**
 * The application pauses the sandbox to stop, resumes it by itself, and connects to it again. Until then it takes no
 * message: with a backend of the hosted kind it cannot queue any.
 */
async function reconnection(page: Page): Promise<void> {
  const connected = Promise.withResolvers<void>();
  let isResumed = false;
  page.on('response', (response) => {
    isResumed ||= response.ok() && response.url().endsWith('/resume');
  });
  page.on('websocket', (socket) => {
    if (isResumed) {
      socket.once('framereceived', () => connected.resolve());
    }
  });
  await connected.promise;
}
