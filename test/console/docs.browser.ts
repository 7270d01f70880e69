import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startBrowser, Visitor } from './visitor.js';

describe('/docs', () => {
  let app: TestApp;
  let browser: Browser;

  beforeAll(async () => {
    [app, browser] = await Promise.all([createTestApp(), startBrowser()]);
  });

  afterAll(async () => {
    await browser.close();
    await app.close();
  });

  it('shows where to start, and executes an operation with what it prefills', async () => {
    const { page } = await Visitor.come(browser, app.url);
    await page.goto('/docs');
    await page.locator('.opblock').first().waitFor();
    const groups = await page
      .locator('.opblock-tag')
      .evaluateAll((all) => all.map((one) => one.dataset['tag']));
    const shown = await page.locator('.opblock-tag-section.is-open').count();

    await page.getByRole('button', { name: 'Authorize' }).first().click();
    await page.locator('.auth-container input').first().fill(app.admin.headers['X-Session-API-Key']);
    await page.locator('.auth-btn-wrapper .authorize').first().click();
    await page.locator('.btn-done').first().click();
    await page.locator('[data-tag="Settings"]').click();
    const operation = page.locator('[id="operations-Settings-store_settings_api_v1_settings_post"]');
    await operation.locator('.opblock-summary-control').click();
    await operation.getByRole('button', { name: 'Execute' }).click();
    await operation.getByText('"Settings stored"').first().waitFor();

    expect(groups.slice(0, 2)).toEqual(['Start here', 'Conversations']);
    expect(shown).toBe(1);
  });
});
