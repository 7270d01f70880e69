import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { FakeOidcIssuer } from '../../../test/fakes/fake-oidc-issuer.js';
import { startBrowser, Visitor } from './visitor.js';

interface DeviceCodes {
  device_code: string;
  user_code: string;
  verification_uri_complete: string;
}

const BUTTON = 'Sign in with your company account';

describe('signing in by the identity provider', () => {
  let issuer: FakeOidcIssuer;
  let demo: Demo;
  let browser: Browser;

  beforeAll(async () => {
    issuer = await FakeOidcIssuer.start();
    const environment = { ...issuer.environment, OIDC_ROLE_MAP: 'ops=admin,dev=member' };
    [demo, browser] = await Promise.all([startDemo({ environment }), startBrowser()]);
  });

  afterAll(async () => {
    await browser.close();
    await demo.close();
    await issuer.server.close();
  });

  /** Uses another host name than the issuer, so that browsers see two sites, as in a company. */
  async function come(name: string, group: string, path: string): Promise<Visitor> {
    const visitor = await Visitor.come(browser, demo.url.replace('127.0.0.1', 'localhost'));
    await visitor.page.goto(path);
    await signIn(visitor, name, group);
    return visitor;
  }

  async function signIn({ page }: Visitor, name: string, group: string): Promise<void> {
    issuer.state.person = { sub: name, email: `${name}@example.com`, name, groups: [group] };
    await page.getByRole('link', { name: BUTTON }).click();
  }

  it('lets two people in with different roles, and one of them out within a moment', async () => {
    const bob = await come('bob', 'dev', '/console/conversations');
    await bob.page.getByRole('heading', { level: 1, name: 'Conversations' }).waitFor();
    expect(new URL(bob.page.url()).hostname).toBe('localhost');
    await bob.open('Settings');
    expect(await bob.page.getByRole('link', { name: 'Administration' }).count()).toBe(0);

    const ada = await come('ada', 'ops', '/console/');
    await ada.open('Administration');
    const row = ada.page.getByRole('listitem').filter({ hasText: 'bob@example.com' });
    await row.getByRole('button', { name: 'Disable' }).click();
    await ada.page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await row.getByRole('button', { name: 'Enable' }).waitFor();

    await bob.page
      .getByRole('navigation', { name: 'Main' })
      .getByRole('link', { name: 'Automations' })
      .click();
    await bob.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await signIn(bob, 'bob', 'dev');
    await bob.page.getByText('Your user is disabled here').waitFor();
    await bob.forgetComplaints();
    await bob.leave();
    await ada.leave();
  });

  it('lets a device in, by its link, for who has to sign in first', async () => {
    const url = demo.url.replace('127.0.0.1', 'localhost');
    const begun = await fetch(`${url}/oauth/device/authorize`, { method: 'POST' });
    const device = (await begun.json()) as DeviceCodes;
    const cy = await come('cy', 'dev', device.verification_uri_complete);

    await cy.page.getByText(`Does the device show ${device.user_code}?`).waitFor();
    await cy.page.getByRole('button', { name: 'Let it in' }).click();
    await cy.page.getByText('The device is let in').waitFor();
    const body = new URLSearchParams({ device_code: device.device_code });
    const given = await fetch(`${url}/oauth/device/token`, { method: 'POST', body });
    expect(await given.json()).toMatchObject({ access_token: expect.stringMatching(/^slw_/) });
    await cy.leave();
  });

  it('lets who is signed in try requests out in the documents, without a key', async () => {
    const ada = await come('ada', 'ops', '/console/');
    await ada.page.getByRole('heading', { name: 'Work' }).waitFor();
    await ada.page.goto('/docs/#/API%20keys/create_api_key');
    const operation = ada.page.locator('#operations-API_keys-create_api_key');
    await operation.getByRole('button', { name: 'Execute' }).click();
    const status = operation.locator('.live-responses-table tbody .response-col_status');
    await status.waitFor();
    expect(await status.innerText()).toContain('201');
    await ada.leave();
  });

  it('shows what the sign-in page offers, by key as well', async () => {
    const guest = await Visitor.come(browser, demo.url);
    await guest.page.goto('/console/');
    await guest.page.getByRole('link', { name: BUTTON }).waitFor();
    await guest.expectSound();
    await guest.page.getByLabel('API key').fill(demo.apiKey);
    await guest.page.getByRole('button', { name: 'Sign in' }).click();
    await guest.page.getByRole('heading', { name: 'Work' }).waitFor();
    await guest.leave();
  });
});
