import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Locator, Page, Request } from 'playwright-core';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { call } from '../../agent-server/test/fakes/scripted-llm.answers.js';
import { FakeOidcIssuer } from '../../../test/fakes/fake-oidc-issuer.js';
import { until } from '../../../test/support/until.js';
import { apiOf } from './api-of.js';
import { startBrowser, Visitor } from './visitor.js';

interface DeviceCodes {
  device_code: string;
  user_code: string;
  verification_uri_complete: string;
}

const BUTTON = 'Sign in with your company account';

const script = () => call('terminal', { command: 'sleep 600' });

/** In a page: the status of a POST by the session of the browser. */
const pauses = (path: string): string => `fetch('/auth/session').then((answer) => answer.json())
  .then(({ csrf_token: token }) => fetch('${path}', { method: 'POST', headers: { 'X-CSRF-Token': token } }))
  .then(({ status }) => status)`;

/** Resolves when the answer to the request has ended, or was cut. */
async function endOf(page: Page, request: Request): Promise<void> {
  const isIt = (ended: Request): boolean => ended === request;
  await Promise.race([page.waitForEvent('requestfinished', isIt), page.waitForEvent('requestfailed', isIt)]);
}

describe('signing in by the identity provider', () => {
  let issuer: FakeOidcIssuer;
  let demo: Demo;
  let browser: Browser;

  beforeAll(async () => {
    issuer = await FakeOidcIssuer.start();
    const environment = { ...issuer.environment, OIDC_ROLE_MAP: 'ops=admin,dev=member,readers=viewer' };
    [demo, browser] = await Promise.all([startDemo({ script, environment }), startBrowser()]);
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

  async function signIn(visitor: Visitor, name: string, group: string, link = BUTTON): Promise<void> {
    const { page } = visitor;
    issuer.state.person = { sub: name, email: `${name}@example.com`, name, groups: [group] };
    await page.getByRole('link', { name: link, exact: true }).click();
    await page.waitForURL(/^http:\/\/localhost/);
    visitor.forgetHosts();
  }

  async function statusOf(key: string): Promise<number> {
    return (await apiOf(demo, key).send('GET', '/api/v1/app-conversations/search')).status;
  }

  async function sandboxStates(): Promise<(string | null)[]> {
    const found = await apiOf(demo).get('/api/v1/sandboxes/search?all=true');
    return jsonList(found, 'items').map((sandbox) => jsonText(sandbox, 'status'));
  }

  async function confirm({ page }: Visitor, name: string): Promise<void> {
    await page.getByRole('dialog').getByRole('button', { name }).click();
  }

  it('gives people the role of their groups, shares their work to be read, and lets one out within a moment', async () => {
    const form = ({ page }: Visitor, name: string): Locator => page.getByRole('form', { name, exact: true });
    const ada = await come('ada', 'ops', '/console/');
    await ada.open('Administration');
    await form(ada, 'Shared model').getByLabel('Model').fill('openai/scripted');
    await form(ada, 'Shared model').getByLabel('Address').fill(demo.modelUrl);
    await form(ada, 'Shared model').getByLabel('Key').fill('sk-of-all');
    await form(ada, 'Shared model').getByRole('button', { name: 'Save' }).click();
    await form(ada, 'Shared model').getByText('A key is stored.').waitFor();

    const bob = await come('bob', 'dev', '/console/settings');
    await form(bob, 'Thinking').getByText('Provided by your organization.').first().waitFor();
    expect(await form(bob, 'Thinking').getByLabel('Model').inputValue()).toBe('openai/scripted');
    expect(await bob.page.getByRole('link', { name: 'Administration' }).count()).toBe(0);
    for (const may of ['Start and continue work', 'Change settings']) {
      await form(bob, 'Key').getByLabel(may).uncheck();
    }
    await form(bob, 'Key').getByLabel('Name').fill('dashboard');
    await form(bob, 'Key').getByRole('button', { name: 'Create key' }).click();
    const key = await bob.page.getByRole('dialog').locator('code').innerText();
    await bob.page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    const start = await apiOf(demo, key).send('POST', '/api/v1/app-conversations', { initial_message: null });
    expect(start).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
    expect(await statusOf(key)).toBe(200);

    await bob.open('Conversations');
    await bob.page.getByText('New conversation', { exact: true }).click();
    await bob.page.getByLabel('Message').fill('Work for long.');
    await bob.page.getByRole('button', { name: 'Start conversation' }).click();
    await bob.page.getByText('The agent is working').waitFor();
    await bob.page.getByRole('button', { name: 'More' }).click();
    await bob.page.getByRole('menuitem', { name: 'Share' }).click();
    await bob.page.getByText('All of your organization may read it now').waitFor();

    const vera = await come('vera', 'readers', '/console/conversations');
    await vera.page.getByRole('button', { name: 'See what others share' }).click();
    await vera.page.getByRole('listitem').filter({ hasText: 'bob@example.com' }).getByRole('link').click();
    await vera.page.getByText('A conversation of bob@example.com').waitFor();
    await vera.page.getByRole('log').getByText('Work for long.').waitFor();
    expect(await vera.page.getByRole('main').getByRole('textbox').count()).toBe(0);
    expect(
      await vera.page
        .getByRole('main')
        .getByRole('button', { name: /Pause|Stop|Resume|More/ })
        .count(),
    ).toBe(0);
    const id = new URL(bob.page.url()).pathname.split('/').at(-1);
    expect(await vera.page.evaluate<number>(pauses(`/api/v1/app-conversations/${id}/pause`))).toBe(403);

    const stream = bob.page.waitForRequest(/events\/stream/);
    await bob.page.reload();
    await bob.page.getByRole('log').getByText('Work for long.').waitFor();
    const ended = endOf(bob.page, await stream);
    await ada.page.reload();
    const row = ada.page.getByRole('listitem').filter({ hasText: 'bob@example.com' });
    await row.getByText('Groups: dev').waitFor();
    await row.getByText('Role by these groups: Member').waitFor();
    expect(await row.getByRole('button', { name: 'Change role' }).count()).toBe(0);
    await ada.shoot('users');
    await row.getByRole('button', { name: 'Disable' }).click();
    await ada.page.getByRole('dialog').getByLabel('Sandboxes').selectOption('stop');
    await ada.shoot('disable');
    await confirm(ada, 'Disable');
    await ended;
    await bob.page.getByText('Your session has ended.').waitFor();
    await bob.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await signIn(bob, 'bob', 'dev');
    await bob.page.getByText('Your user is disabled here').waitFor();
    expect(await statusOf(key)).toBe(401);
    await row.getByRole('button', { name: 'Enable' }).waitFor();
    await until(async () => (await sandboxStates()).join() === 'PAUSED');

    await ada.page.getByRole('button', { name: 'Stop sharing' }).click();
    await confirm(ada, 'Stop sharing');
    await form(ada, 'Shared model').getByText('No key is stored.').waitFor();
    await Promise.all([ada, bob, vera].map((each) => each.leave()));
  });

  it('links a company account to a user of a key, and leaves nobody without a way in', async () => {
    const nadia = await Visitor.come(browser, demo.url.replace('127.0.0.1', 'localhost'));
    await nadia.signIn(demo.nadia.apiKey);
    await nadia.open('Settings');
    await nadia.page.getByText('No company account is linked.').waitFor();
    issuer.state.person = { sub: 'nadia', email: 'n@example.com', groups: ['dev'] };
    const link = nadia.page.getByRole('form', { name: 'Company account' });
    await link.getByLabel('API key of this user').fill('slw_wrong');
    await link.getByRole('button', { name: 'Link' }).click();
    await link.getByText('This is not a valid API key').waitFor();
    await nadia.expectSound(1);
    await link.getByLabel('API key of this user').fill(demo.nadia.apiKey);
    await link.getByRole('button', { name: 'Link' }).click();
    const account = nadia.page.getByRole('list', { name: 'Company accounts' }).getByRole('listitem');
    await account.getByText('nadia').waitFor();
    await account.getByRole('button', { name: 'Unlink' }).click();
    await confirm(nadia, 'Unlink');
    // This session began with it.
    await nadia.page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await nadia.leave();

    const eve = await come('eve', 'dev', '/console/settings');
    const own = eve.page.getByRole('list', { name: 'Company accounts' }).getByRole('listitem');
    await own.getByRole('button', { name: 'Unlink' }).click();
    await confirm(eve, 'Unlink');
    await eve.page.getByText('This is the only way in for you').waitFor();
    await own.getByText('eve').waitFor();
    await eve.expectSound(1);
    await eve.leave();
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
    const key = jsonText(await given.json(), 'access_token') ?? '';
    expect(await statusOf(key)).toBe(200);

    await cy.open('Settings');
    const devices = cy.page.getByRole('list', { name: 'Devices' });
    await devices.getByText('May read, work').waitFor();
    await cy.expectSound();
    await devices.getByRole('button', { name: 'Revoke' }).click();
    await confirm(cy, 'Revoke');
    await cy.page.getByText('No device is let in.').waitFor();
    await until(async () => (await statusOf(key)) === 401);
    await cy.leave();
  });

  it('signs people in by Authorize in the documents, who try requests out without a key then', async () => {
    const ada = await Visitor.come(browser, demo.url.replace('127.0.0.1', 'localhost'));
    const authorize = (): Promise<void> =>
      ada.page.getByRole('button', { name: 'Authorize' }).first().click();
    await ada.page.goto('/docs');
    await authorize();
    await signIn(ada, 'ada', 'ops', 'Sign in');
    await authorize();
    await ada.page.getByText('You are signed in as ada@example.com.').waitFor();
    expect(new URL(ada.page.url()).pathname).toBe('/docs');
    await ada.page.goto('/docs/#/API%20keys/create_api_key');
    // Another fragment alone loads no page.
    await ada.page.reload();
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
