import { strict as assert } from 'node:assert';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { until } from '../support/until.js';
import type { ApiClient } from '../system/journeys/support/api-client.js';
import { type Client, NotInstallable } from './client.js';
import { chromiumProgram } from './support/browser.js';
import { ANSWER, DONE, HANG } from './support/clients-model.js';
import { CHANGE_REQUEST } from './support/clients-world.js';
import { Site } from './support/site.js';
import { WebApp } from './support/web-app.js';

const BUILT = process.env['WEB_APP_0_62'];
const PAGES = [
  '/',
  '/settings',
  '/settings/mcp',
  '/settings/integrations',
  '/settings/app',
  '/settings/secrets',
  '/microagent-management',
];
/** It has the newer API behind a flag of the browser. */
const PREPARE = `localStorage.setItem('FEATURE_USE_V1_CONVERSATION_API', 'true');`;
/**
 * It looks whether a web server answers at the sandbox's ports, from another origin and before there is one, and its
 * pages differ from the one that was rendered when it was built (React's error 418).
 */
const OWN = /\/\/worker-\d|React error #418/;
const CONVERSATIONS = '/api/v1/app-conversations/search';

export const olderWebApp: Client = {
  name: 'web-app-0-62',
  what: 'the web application of OpenHands 0.62.0, built from its source, in headless Chromium',
  install: async () => {
    const program = chromiumProgram();
    if (BUILT === undefined || !existsSync(path.join(BUILT, 'index.html'))) {
      throw new NotInstallable(
        'no package has it: build frontend/ of OpenHands 0.62.0 (npm ci && npm run build) and set WEB_APP_0_62 to its folder build',
      );
    }
    const site = await Site.open(BUILT);
    return {
      environment: { CORS_ORIGINS: site.origin },
      run: async (world, steps) => {
        const { key, api } = await world.settledUser();
        await api.saveSettings({
          language: 'en',
          git_user_name: 'Nadia Okafor',
          git_user_email: 'nadia@quayside.example',
          search_api_key: world.journey.secrets.plant('search key'),
          user_consents_to_analytics: false,
          enable_sound_notifications: true,
          max_budget_per_task: 5,
        });
        site.connect(world.url, key);
        const app = await WebApp.open({
          name: 'web-app-0-62',
          origin: site.origin,
          steps,
          shots: world.shots,
          program,
          prepare: PREPARE,
          own: OWN,
        });
        try {
          await lookAround(app, api);
          await workOnTask(app, api);
        } finally {
          await app.close(/saved|success/i);
          await site.close();
        }
      },
    };
  },
};

/** Every page, and nothing that is changed by looking at it. */
async function lookAround(app: WebApp, api: ApiClient): Promise<void> {
  const before = await allSettings(api);
  await app.step('home with suggested tasks', async (page) => {
    await app.goto('/');
    const tasks = page.getByTestId('task-launch-button');
    await tasks.first().waitFor();
    return `${await tasks.count()} tasks; the first is ${await tasks.first().innerText()}`;
  });
  await app.step('a repository is picked', async (page) => {
    await page.getByTestId('git-repo-dropdown').click();
    await page.getByText('quayside/storefront', { exact: true }).first().click();
    await page.getByTestId('git-branch-dropdown-input').waitFor();
    return 'quayside/storefront with its branches';
  });
  for (const address of PAGES) {
    await app.step(`the page ${address}`, async (page) => {
      await app.goto(address);
      await page.waitForLoadState('networkidle');
      const text = await page.locator('main, [data-testid=root-layout]').first().innerText();
      assert.doesNotMatch(text, /not found|something went wrong|error/i);
      return text.slice(0, 100);
    });
  }
  await app.step('looking at every page has changed no setting', async () => {
    assert.deepEqual(await allSettings(api), before);
    return `${Object.keys(Object(before)).length} answers as before`;
  });
}

async function workOnTask(app: WebApp, api: ApiClient): Promise<void> {
  await app.step('a task is started by a click', async (page) => {
    await app.goto('/');
    await page.getByTestId('task-launch-button').filter({ hasText: CHANGE_REQUEST }).first().click();
    await page.waitForURL(/\/conversations\/[0-9a-f]{32}|\/conversations\/[0-9a-f-]{36}/);
    return new URL(page.url()).pathname.replaceAll(/[0-9a-f-]{32,}/g, '{id}');
  });
  await app.step('what to do is asked for, and its work arrives live', async (page) => {
    // With the newer API it opens the task's repository, and sends nothing else of the task.
    await page.getByTestId('chat-input').fill('Make the check pass.');
    await page.getByTestId('submit-button').click();
    await page.getByText(DONE).first().waitFor();
    return DONE;
  });
  await app.step('a message is answered', async (page) => {
    await page.getByTestId('chat-input').fill('What did you change?');
    await page.getByTestId('submit-button').click();
    await page.getByText(ANSWER).first().waitFor();
    return ANSWER;
  });
  await app.step('stop while the model thinks', async (page) => {
    await page.getByTestId('chat-input').fill(`Please ${HANG}.`);
    await page.getByTestId('submit-button').click();
    await page.getByTestId('stop-button').click();
    await until(async () => {
      const [first] = jsonList(await api.get(CONVERSATIONS), 'items');
      return jsonText(first, 'execution_status') === 'paused';
    });
    return 'paused';
  });
}

/** Of both generations of the API; the newer one has it since it was asked for. */
async function allSettings(api: ApiClient): Promise<unknown> {
  const answers = ['/api/settings', '/api/v1/settings', '/api/secrets'].map(async (address) => [
    address,
    await api.send('GET', address),
  ]);
  return Object.fromEntries(await Promise.all(answers));
}
