import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Locator } from 'playwright-core';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { demoModel } from '../../../demo/demo-model.js';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { say } from '../../agent-server/test/fakes/scripted-llm.answers.js';
import type { Script } from '../../agent-server/test/fakes/scripted-llm.js';
import { FakeBrowser } from '../../../test/fakes/fake-push-service.js';
import { until } from '../../../test/support/until.js';
import { apiOf } from './api-of.js';
import { startAtTerminal } from './terminal-service.js';
import { startBrowser, Visitor } from './visitor.js';

const TITLE = 'Retry the address lookup once before giving up';
const CODE = 'jTq0mJ0cV4mXQm2y8b1u3bZ6r9d5fQw7eTn2sLxK4aU';
/** What a model writes that calls tools in text alone. */
const IN_TEXT = '<function=add>\n<parameter=a>2</parameter>\n<parameter=b>3</parameter>\n</function>';
const SHARED = 'Provided by your organization. One of your own takes its place.';
const KINDS = [
  'Merge conflicts',
  'Failing checks',
  'Unresolved comments',
  'Open issues',
  'Open pull requests',
  'Agent instructions',
];

interface DeviceCodes {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
}

describe('the console', () => {
  let demo: Demo;
  let browser: Browser;
  let nadia: Visitor;

  const form = (name: string): Locator => nadia.page.getByRole('form', { name, exact: true });
  const row = (text: string): Locator => nadia.page.getByRole('listitem').filter({ hasText: text });

  beforeAll(async () => {
    const script: Script = (request) =>
      request.text.includes('<function=add>') ? say(IN_TEXT) : demoModel(request);
    [demo, browser] = await Promise.all([startDemo({ script }), startBrowser()]);
    nadia = await Visitor.come(browser, demo.url);
  });

  afterAll(async () => {
    await browser.close();
    await demo.close();
  });

  describe('for a stranger', () => {
    it('is at / and follows the colours of the system at once', async () => {
      await nadia.page.goto('/');
      await nadia.page.getByRole('heading', { name: 'Sign in' }).waitFor();

      expect(await nadia.ground('dark')).not.toBe(await nadia.ground('light'));
      await nadia.expectSound();
    });

    it('refuses a wrong key with words', async () => {
      const stranger = await Visitor.come(browser, demo.url);
      await stranger.page.goto('/console/settings');
      await stranger.page.getByLabel('API key').fill('slw_not-a-key');
      await stranger.page.getByRole('button', { name: 'Sign in' }).click();

      expect(await stranger.page.getByRole('alert').innerText()).toMatch(/key/i);
      expect(await stranger.hasSession()).toBe(false);
      await stranger.expectSound(1);
      await stranger.leave();
    });

    it('is led through /docs, where Execute sends what is prefilled', async () => {
      const stranger = await Visitor.come(browser, demo.url);
      const { page } = stranger;
      await page.goto('/docs');
      await page.locator('.opblock').first().waitFor();
      const groups = await page.locator('.opblock-tag').allInnerTexts();
      const open = await page.locator('.opblock-tag-section.is-open').count();
      await page.getByRole('button', { name: 'Authorize' }).first().click();
      await page.locator('.auth-container input').first().fill(demo.apiKey);
      await page.locator('.auth-btn-wrapper .authorize').first().click();
      await page.locator('.btn-done').first().click();
      await page.locator('[data-tag="Settings"]').click();
      const operation = page.locator('[id="operations-Settings-store_settings_api_v1_settings_post"]');
      await operation.locator('.opblock-summary-control').click();
      await operation.getByRole('button', { name: 'Execute' }).click();
      await operation.getByText('"Settings stored"').first().waitFor();
      await page.locator('[data-tag="Conversations"]').click();
      const search = page.locator('[id="operations-Conversations-search_app_conversations"]');
      await search.locator('.opblock-summary-control').click();
      const prefilled = (name: string): Promise<string> =>
        search.locator(`[data-param-name="${name}"] input`).inputValue();

      expect([groups[0], groups[1]]).toEqual([
        expect.stringMatching(/^Start here/),
        expect.stringMatching(/^Conversations/),
      ]);
      expect(open).toBe(1);
      // Nothing that would be left out otherwise.
      expect([await prefilled('title__contains'), await prefilled('limit')]).toEqual(['', '100']);
      await stranger.leave();
    });

    it('says that a link was used, and forgets its code', async () => {
      const stranger = await Visitor.come(browser, demo.url);
      await stranger.page.goto(`/console/#code=${CODE}`);
      await stranger.page.getByText('The link does not work').waitFor();

      expect(await stranger.kept()).not.toContain(CODE);
      await stranger.leave();
    });

    it('signs in with the link that a start prints on a terminal, once', async () => {
      const started = await startAtTerminal();
      const { link } = started;
      const { origin, hash } = new URL(link);
      const [guest, late] = [await Visitor.come(browser, origin), await Visitor.come(browser, origin)];
      try {
        await guest.page.goto(link);
        await guest.page.getByRole('heading', { name: 'Work' }).waitFor();
        await late.page.goto(link);
        await late.page.getByText('The link does not work').waitFor();

        expect([await guest.hasSession(), await late.hasSession()]).toEqual([true, false]);
        expect(await guest.kept()).not.toContain(hash);
        await guest.expectSound();
      } finally {
        await guest.leave();
        await late.leave();
        await started.stop();
      }
    });
  });

  it('lets a device in, and refuses another, once a person has compared the code', async () => {
    const person = await Visitor.come(browser, demo.url);
    const { page } = person;
    const begin = async (): Promise<DeviceCodes> => {
      const begun = await fetch(`${demo.url}/oauth/device/authorize`, {
        method: 'POST',
        headers: { 'User-Agent': 'python-httpx/0.28.1' },
      });
      return (await begun.json()) as DeviceCodes;
    };
    const fetchKey = async ({ device_code: code }: DeviceCodes): Promise<object> => {
      const body = new URLSearchParams({ device_code: code });
      return Object(await (await fetch(`${demo.url}/oauth/device/token`, { method: 'POST', body })).json());
    };
    const [wanted, unwanted] = [await begin(), await begin()];

    await page.goto(wanted.verification_uri_complete);
    await page.getByLabel('API key').fill(demo.apiKey);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(`Does the device show ${wanted.user_code}?`).waitFor();
    await page.getByText('python-httpx/0.28.1').waitFor();
    await page.getByText('127.0.0.1').waitFor();
    await person.expectSound();
    await person.shoot('device');
    expect(await fetchKey(wanted)).toMatchObject({ error: 'authorization_pending' });
    await page.getByRole('button', { name: 'Let it in' }).click();
    await page.getByText('The device is let in').waitFor();
    expect(await fetchKey(wanted)).toMatchObject({ access_token: expect.stringMatching(/^slw_/) });
    await person.expectSound();

    await page.goto(wanted.verification_uri);
    await page.getByLabel('Code').waitFor();
    await person.expectSound();
    await page.getByLabel('Code').fill(unwanted.user_code.toLowerCase());
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('The device is refused').waitFor();
    expect(await fetchKey(unwanted)).toMatchObject({ error: 'access_denied' });
    await page.goto(wanted.verification_uri_complete);
    await page.getByText('No device waits with this code').waitFor();
    await page.getByRole('button', { name: 'Type another code' }).click();
    await page.getByLabel('Code').waitFor();
    await person.leave();
  });

  it('exchanges a key for a session, and keeps the key nowhere', async () => {
    await nadia.signIn(demo.apiKey);

    expect(await nadia.hasSession()).toBe(true);
    expect(await nadia.kept()).not.toContain(demo.apiKey);
  });

  it.each(['Work', 'Conversations', 'Automations', 'Settings', 'Administration'])(
    'has a page %s that is sound before anything is there',
    async (name) => {
      await nadia.open(name);
      await nadia.page.getByText('Loading').first().waitFor({ state: 'detached' });

      await nadia.expectSound();
    },
  );

  it('says why a git host refuses a token', async () => {
    await nadia.open('Settings');
    await form('Connection').getByLabel('Token').fill('ghp_wrong');
    await form('Connection').getByRole('button', { name: 'Connect' }).click();

    expect(await form('Connection').getByRole('alert').innerText()).toMatch(/GitHub|token/);
    await nadia.expectSound(1);
  });

  it('says at each field what is wrong with it, and offers what is configured', async () => {
    await form('Connection').getByLabel('Token').fill('ghs_installation');
    await form('Connection').getByLabel('Host', { exact: true }).fill('nowhere.example');
    await form('Connection').getByRole('button', { name: 'Connect' }).click();
    const token = form('Connection').getByLabel('Token');
    await form('Connection').getByText('an installation token (ghs_…) has no user').waitFor();
    await form('Connection').getByText('This host is not allowed here').waitFor();

    expect(await token.getAttribute('aria-invalid')).toBe('true');
    expect(await form('Connection').innerText()).not.toContain('provider_tokens');
    expect(await form('Connection').getByLabel('Provider').locator('option').allInnerTexts()).toEqual([
      'GitHub',
      'GitLab',
      'Bitbucket',
    ]);
    await nadia.expectSound(1);
    await nadia.page.reload();
  });

  it('connects git hosts and a model', async () => {
    const tokens = { github: 'GitHub', gitlab: 'GitLab', bitbucket: 'Bitbucket' } as const;
    for (const [provider, name] of Object.entries(tokens)) {
      await form('Connection').getByLabel('Provider').selectOption(provider);
      await form('Connection')
        .getByLabel('Token')
        .fill(demo.worlds[provider as keyof typeof tokens].token);
      await form('Connection').getByRole('button', { name: 'Connect' }).click();
      await form('Connection').getByText(`${name} is connected`).waitFor();
      // The token would be sent to the host that the form shows.
      const shown = await form('Connection').getByLabel('Provider').locator('option:checked').innerText();
      await form('Connection')
        .getByRole('link', { name: `Get one at ${shown}` })
        .waitFor();
    }
    await form('Thinking').getByLabel('Model').fill('openai/scripted');
    await form('Thinking').getByLabel('Address').fill(demo.modelUrl);
    await form('Thinking').getByLabel('Key').fill('sk-demo');
    await form('Thinking').getByRole('button', { name: 'Save' }).click();
    await form('Thinking').getByText('Saved').waitFor();

    expect(await form('Thinking').getByLabel('Key').inputValue()).toBe('');
  });

  it('tests the model, and sets what suits it', async () => {
    await nadia.page.getByRole('button', { name: 'Test this model' }).click();
    const table = nadia.page.getByRole('table', { name: 'What openai/scripted can do' });
    await table.getByRole('row', { name: /^reachable ok/i }).waitFor();
    const api = apiOf(demo);
    const native = async () =>
      jsonAt(await api.get('/api/v1/settings'), 'agent_settings', 'llm', 'native_tool_calling');
    expect(await native()).not.toBe(false);
    // The script of this world calls other tools than it is asked for.
    await nadia.page.getByRole('button', { name: 'Set native tool calling: off' }).click();
    await nadia.page.getByText('New conversations work with native tool calling: off').waitFor();
    expect(await native()).toBe(false);
    await nadia.expectSound();
    await api.post('/api/v1/settings', { agent_settings_diff: { llm: { native_tool_calling: true } } });
  });

  it('stores a secret, a tool server and a webhook', async () => {
    await form('Secret').getByLabel('Name').fill('NPM_TOKEN');
    await form('Secret').getByLabel('Value').fill('a value that nobody reads again');
    await form('Secret').getByLabel('Hosts').fill('registry.npmjs.org, npm.example.com');
    await form('Secret').getByLabel('For').selectOption('setup');
    await form('Secret').getByRole('button', { name: 'Save' }).click();
    await form('Secret')
      .getByText(/NPM_TOKEN is stored\./)
      .waitFor();
    await nadia.page.getByText('registry.npmjs.org, npm.example.com').waitFor();
    await nadia.page.getByText('For setup scripts alone').waitFor();
    await form('Tool server').getByLabel('Kind').selectOption('stdio');
    await form('Tool server').getByLabel('URL or command').fill('true');
    await form('Tool server').getByRole('button', { name: 'Test' }).click();
    await form('Tool server').getByRole('alert').getByText('It does not work').waitFor();
    await form('Tool server').getByRole('button', { name: 'Save' }).click();
    await row('true').first().waitFor();
    await form('Webhook').getByLabel('URL').fill('https://ci.example.com/hooks');
    await form('Webhook').getByRole('button', { name: 'Save' }).click();

    const dialog = nadia.page.getByRole('dialog', { name: 'Secret of the webhook' });
    expect(await dialog.locator('code').innerText()).toMatch(/^whsec_/);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await row('https://ci.example.com/hooks').getByRole('button', { name: 'Deliveries' }).click();
    await nadia.page.getByText('Nothing was sent in the last seven days.').waitFor();
    await nadia.shoot('settings');
    await nadia.expectSound();
    await row('true').getByRole('button', { name: 'Remove' }).click();
    await nadia.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await nadia.page.getByText('No tool server is configured.').waitFor();
  });

  it('folds its parts on a phone, and opens the one that is asked for', async () => {
    const { page } = nadia;
    const height = (): Promise<number> => page.evaluate('document.documentElement.scrollHeight');
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('button', { name: 'Webhooks', exact: true }).waitFor();
    expect(await height()).toBeLessThan(1_200);
    expect(await form('Webhook').isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Webhooks', exact: true }).click();
    await form('Webhook').waitFor();
    await nadia.expectSound();
    await page.setViewportSize({ width: 1280, height: 800 });
    await form('Secret').waitFor();
  });

  it('makes a key that is shown once, and revokes it', async () => {
    await form('Key').getByLabel('Name').fill('ci of nadia');
    await form('Key').getByLabel('Valid from').fill('2020-01-01');
    await form('Key').getByLabel('Expires').fill('2099-12-31');
    const may = form('Key').getByRole('group', { name: 'May' });
    expect(await may.getByRole('checkbox', { checked: true }).count()).toBe(3);
    expect(await may.getByLabel('Administer').isChecked()).toBe(false);
    for (const label of ['Read', 'Start and continue work', 'Change settings']) {
      await may.getByLabel(label).uncheck();
    }
    await form('Key').getByRole('button', { name: 'Create key' }).click();
    await may.getByText('Expected one scope or more.').waitFor();
    await nadia.expectSound(1);
    await may.getByLabel('Read').check();
    await form('Key').getByRole('button', { name: 'Create key' }).click();
    const dialog = nadia.page.getByRole('dialog', { name: 'Your new key' });
    const key = await dialog.locator('code').innerText();
    const statusOfKey = async (method = 'GET'): Promise<number> =>
      (await apiOf(demo, key).send(method, '/api/v1/api-keys')).status;
    expect([await statusOfKey(), await statusOfKey('POST')]).toEqual([200, 403]);
    await nadia.expectSound();
    await nadia.allow('clipboard-read', 'clipboard-write');
    await dialog.getByRole('button', { name: 'Copy' }).click();
    await dialog.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await nadia.page.evaluate('navigator.clipboard.readText()')).toBe(key);
    await dialog.getByRole('button', { name: 'Done' }).click();
    const made = row('ci of nadia');
    await made.getByText(/^Expires in [\d,]+ days$/).waitFor();
    await made.getByText('May read', { exact: true }).waitFor();
    expect(await nadia.kept()).not.toContain(key);
    await nadia.shoot('keys');
    await nadia.expectSound();
    await made.getByRole('button', { name: 'Revoke' }).click();
    await nadia.page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await made.waitFor({ state: 'detached' });
    await until(async () => (await statusOfKey()) === 401);
  });

  it('names repositories of a key where they are filled in, and nowhere else', async () => {
    const keys = '**/api/v1/api-keys*';
    const key = {
      id: 'abcdefgh',
      name: 'of a repository',
      scopes: ['read'],
      repositories: ['github:octo/app', 'gitlab:group/*'],
      created_at: new Date().toISOString(),
      not_before: null,
      expires_at: null,
      last_used_at: null,
      revoked_at: null,
      of_device: false,
    };
    const sent: Record<string, unknown>[] = [];
    await nadia.page.route(keys, async (route) => {
      const isMade = route.request().method() === 'POST';
      sent.push(...(isMade ? [route.request().postDataJSON() as Record<string, unknown>] : []));
      await route.fulfill(isMade ? { status: 201, json: { ...key, key: 'slw_a_b' } } : { json: [key] });
    });
    for (const repositories of ['', 'github:octo/app, gitlab:group/*,']) {
      // The form is emptied unless it has changed since, which another name tells at once.
      await form('Key').getByLabel('Name').fill(`for ${repositories}`);
      await form('Key').getByLabel('Repositories').fill(repositories);
      await form('Key').getByRole('button', { name: 'Create key' }).click();
      await nadia.page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    }
    await row('of a repository').getByText('In github:octo/app, gitlab:group/*').waitFor();

    expect(sent.map((body) => body['repositories'])).toEqual([
      undefined,
      ['github:octo/app', 'gitlab:group/*'],
    ]);
    await nadia.expectSound();
    await form('Key').scrollIntoViewIfNeeded();
    await nadia.shoot('key-form');
    await nadia.page.unrouteAll({ behavior: 'wait' });
    await nadia.page.reload();
    await row('of a repository').waitFor({ state: 'detached' });
    await form('Key').getByLabel('Name').fill('of no repository');
    await form('Key').getByLabel('Repositories').fill('octo');
    await form('Key').getByRole('button', { name: 'Create key' }).click();
    await form('Key')
      .getByText(/^Expected a repository such as/)
      .waitFor();
    await nadia.expectSound(1);
    await nadia.page.reload();
  });

  it('notifies a browser that was asked to, and says no more after signing out', async () => {
    const away = await Visitor.come(browser, demo.url);
    const { page } = away;
    const here = new FakeBrowser('https://push.example.com/of-a-browser').subscription;
    await away.allow('notifications');
    // The push service of its vendor is out of reach.
    await page.addInitScript(`
      const here = { ...${JSON.stringify(here)}, toJSON: () => (${JSON.stringify(here)}), unsubscribe: async () => { sessionStorage.removeItem('subscribed'); return true; } };
      PushManager.prototype.getSubscription = async () => (sessionStorage.getItem('subscribed') ? here : null);
      PushManager.prototype.subscribe = async ({ applicationServerKey }) => { sessionStorage.setItem('subscribed', applicationServerKey); return here; };`);
    await away.signIn(demo.apiKey);
    await away.open('Settings');
    const kinds = page.getByRole('form', { name: 'Notifications', exact: true });
    await kinds.getByLabel('An agent waits for me').check();
    await kinds.getByLabel('An agent has failed').check();
    await kinds.getByRole('button', { name: 'Save' }).click();
    await kinds.getByText('Saved for this browser.').waitFor();
    await away.expectSound();
    const listed = (): Promise<unknown> => apiOf(demo).get('/api/v1/push/subscriptions');
    expect(await listed()).toMatchObject([{ kinds: ['waiting', 'failed'] }]);
    await page.reload();
    await kinds.getByLabel('An agent waits for me').and(page.locator(':checked')).waitFor();
    expect(await kinds.getByLabel('An agent has finished').isChecked()).toBe(false);

    const url = `${demo.url}/console/conversations`;
    const message = { kind: 'waiting', title: 'Mend it', body: 'Waits for you', url, tag: 'a' };
    const tools = await page.context().newCDPSession(page);
    const registered = new Promise<string>((resolve) => {
      tools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [found] }) => {
        if (found !== undefined) {
          resolve(found.registrationId);
        }
      });
    });
    const isActive = `navigator.serviceWorker.getRegistration('/console/').then((found) => found?.active?.state === 'activated')`;
    await until(() => page.evaluate<boolean>(isActive));
    await tools.send('ServiceWorker.enable');
    const push = {
      origin: demo.url,
      registrationId: await registered,
      data: JSON.stringify(message),
    };
    const shown = `navigator.serviceWorker.getRegistration('/console/').then((worker) => worker.getNotifications())
      .then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, data })))`;
    // The browser drops what comes while it stops or updates the worker. One with the same tag takes the place of the one before.
    let notifications: unknown[] = [];
    await until(async () => {
      await tools.send('ServiceWorker.deliverPushMessage', push);
      notifications = await page.evaluate<unknown[]>(shown);
      return notifications.length > 0;
    });
    expect(notifications).toEqual([{ title: 'Mend it', body: 'Waits for you', tag: 'a', data: url }]);

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await listed()).toEqual([]);
    await away.leave();
  });

  it('says in its title and on its icon how many conversations wait', async () => {
    const search = '**/api/v1/app-conversations/search?state__eq=waiting*';
    const icon = nadia.page.locator('link[rel="icon"]');
    await nadia.page.route(search, (route) =>
      route.fulfill({ json: { items: [{}, {}], next_page_id: null } }),
    );
    await nadia.page.reload();
    await until(async () => (await nadia.page.title()) === '(2) Settings · Slipway');
    expect(decodeURIComponent((await icon.getAttribute('href')) ?? '')).toContain('>2</text>');
    await nadia.expectSound();
    await nadia.page.unroute(search);
    await nadia.page.reload();
    await until(async () => (await nadia.page.title()) === 'Settings · Slipway');
    expect(await icon.getAttribute('href')).toMatch(/\/assets\/icon-[\w-]+\.svg$/);
  });

  it('shows the work on all hosts, by kind', async () => {
    await nadia.open('Work');
    await row(TITLE).waitFor();

    expect(await nadia.page.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(
      KINDS.map((kind) => expect.stringMatching(new RegExp(`^${kind} \\d`))),
    );
    const title = row(TITLE).getByRole('link', { name: TITLE });
    expect(await title.getAttribute('href')).toMatch(/\/quayside\/storefront\/(pull|issues)\/\d+$/);
    expect([await title.getAttribute('target'), await title.getAttribute('rel')]).toEqual([
      '_blank',
      'noreferrer',
    ]);
    await nadia.shoot('work');
    await nadia.page.getByLabel('Kind').selectOption('Failing checks');
    await nadia.page.getByLabel('Host').selectOption('GitLab');
    expect(await nadia.page.getByRole('button', { name: 'Start' }).count()).toBe(1);
    await nadia.page.getByLabel('Kind').selectOption('');
    await nadia.page.getByLabel('Host').selectOption('');
    await nadia.expectSound();
  });

  it('says why a host takes no part', async () => {
    await nadia.open('Settings');
    demo.worlds.gitlab.token = 'glpat-demo-newer-token-of-nadia';
    await form('Connection').getByLabel('Provider').selectOption('gitlab');
    await form('Connection').getByLabel('Token').fill(demo.worlds.gitlab.token);
    await form('Connection').getByRole('button', { name: 'Connect' }).click();
    await form('Connection').getByText('GitLab is connected').waitFor();
    demo.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });
    await nadia.open('Work');
    const status = nadia.page
      .getByRole('list', { name: 'Sources' })
      .getByText(/GitLab: it takes no more requests for now\. Try again in \d+ s\./);
    await status.waitFor();
    expect(await row(TITLE).count()).toBe(1);
    demo.gitlab.clearFaults();
  });

  it('says of each host why no task can be loaded, and what to do', async () => {
    const failed = [
      { provider: 'github', code: 'unauthorized' },
      { provider: 'gitlab', code: 'rate_limited', retry_after: 41, detail: 'slow down' },
      { provider: 'bitbucket', code: 'timeout' },
    ];
    const problem = {
      code: 'git_providers_failed',
      detail: 'No git provider gave a usable answer; `errors` says why for each.',
      errors: failed,
    };
    const tasks = '**/api/v1/git/suggested-tasks/search*';
    await nadia.page.route(tasks, (route) => route.fulfill({ status: 502, json: problem }));
    await nadia.page.goto('/console/');
    const refused = nadia.page.getByRole('alert').filter({ hasText: 'Cannot load tasks' });
    await refused.waitFor();

    expect(await refused.getByRole('listitem').allInnerTexts()).toEqual([
      'GitHub: it refuses the token. Connect it again in Settings.',
      'GitLab: it takes no more requests for now (slow down). Try again in 41 s.',
      'Bitbucket: it does not answer in time. Try again in a minute.',
    ]);
    expect(await refused.innerText()).not.toContain('`');
    await nadia.expectSound(1);
    await nadia.page.unroute(tasks);
    await refused.getByRole('button', { name: 'Try again' }).click();
    await row(TITLE).waitFor();
  });

  it('says of a token that no host has accepted yet why that is so', async () => {
    demo.gitlab.injectFault({ kind: 'reset' });
    await nadia.open('Settings');
    await form('Connection').getByLabel('Provider').selectOption('gitlab');
    await form('Connection').getByLabel('Token').fill(demo.worlds.gitlab.token);
    await form('Connection').getByRole('button', { name: 'Connect' }).click();
    const stored = row('gitlab.com').filter({ hasText: 'GitLab' });
    await stored.getByText('not verified').waitFor();
    expect(await stored.innerText()).toContain('not verified: could not reach GitLab.');
    await nadia.expectSound();
    demo.gitlab.clearFaults();
    await nadia.open('Work');
    await nadia.page.getByRole('button', { name: 'Refresh' }).click();
    await nadia.page.getByText('GitLab').first().waitFor();
  });

  it('starts a task step by step, and opens its conversation', async () => {
    // Shown for as long as the start takes.
    const progress = row(TITLE).getByRole('list', { name: 'Progress of the start' }).waitFor();
    await row(TITLE).getByRole('button', { name: 'Start', exact: true }).click();
    await progress;
    await nadia.page.getByRole('heading', { level: 1, name: TITLE }).waitFor();

    const log = nadia.page.getByRole('log');
    await log.getByText('FAIL: sh lookup.sh: expected 2, got 1').waitFor();
    await log.getByText('The checks pass, and the change is on').waitFor();
    expect(nadia.page.url()).toMatch(/\/console\/conversations\/[0-9a-f-]+$/);
  });

  it('shows changes with whole lines, files, tokens and cost', async () => {
    const changes = nadia.page.getByRole('tabpanel', { name: 'Changes' });
    await changes.locator('del', { hasText: 'limit=1' }).waitFor();
    await changes.locator('ins', { hasText: 'limit=2' }).waitFor();
    await nadia.shoot('conversation');
    await nadia.expectSound();
    await nadia.page.getByRole('tab', { name: 'Files' }).click();
    await nadia.page.getByRole('button', { name: 'AGENTS.md' }).click();
    await nadia.page.getByText('before every commit').waitFor();

    const facts = await nadia.page.getByRole('region', { name: 'Facts' }).innerText();
    // The scripted model has no price.
    expect(facts).toMatch(/Cost\s+unknown \([\d,]+ tokens\)/);
    expect(facts).toMatch(/Tokens\s+[\d,]+ in, \d+ out/);
    // The script serves nothing.
    expect(facts).toMatch(/Ports\s+worker 1: nothing listens yet\s+worker 2: nothing listens yet/);
    await nadia.expectSound();
  });

  it('shows its task as a card, the words for the agent folded, and links it', async () => {
    const card = nadia.page.getByRole('log').getByRole('listitem').first();
    expect(await card.innerText()).toContain('Failing checks · GitHub · quayside/storefront · #479');
    const words = card.getByText('Make them pass.');
    expect(await words.isVisible()).toBe(false);
    await card.getByText('Instructions for the agent').click();
    await words.waitFor();
    await card.getByText('Instructions for the agent').click();
    const link = nadia.page.getByRole('main').getByRole('link', { name: '#479', exact: true });

    expect(await link.getAttribute('href')).toMatch(/\/quayside\/storefront\/pull\/479$/);
  });

  it('is renamed, downloaded, forked and linked by its menu', async () => {
    const address = nadia.page.url();
    const choose = async (name: string): Promise<void> => {
      await nadia.page.getByRole('button', { name: 'More' }).click();
      await nadia.page.getByRole('menuitem', { name, exact: true }).click();
    };
    await nadia.page.getByRole('button', { name: 'More' }).click();
    await nadia.page.getByRole('menuitem', { name: 'Delete' }).waitFor();
    await nadia.expectSound();
    const downloaded = nadia.page.waitForEvent('download');
    await nadia.page.getByRole('menuitem', { name: 'Download' }).click();
    expect((await downloaded).suggestedFilename()).toBe('conversation.zip');
    await nadia.allow('clipboard-read', 'clipboard-write');
    await choose('Copy link');
    await nadia.page.getByText('The link is copied').waitFor();
    expect(await nadia.page.evaluate('navigator.clipboard.readText()')).toBe(address);
    for (const title of ['Twice is enough', TITLE]) {
      await choose('Rename');
      await form('Rename').getByLabel('Title').fill(title);
      await form('Rename').getByRole('button', { name: 'Rename' }).click();
      await nadia.page.getByRole('heading', { level: 1, name: title }).waitFor();
    }
    await choose('Fork');
    await form('New conversation').waitFor();
    expect(await form('New conversation').getByLabel('Message').inputValue()).toBe(TITLE);
    expect(await nadia.page.getByRole('combobox', { name: 'Repository' }).inputValue()).toBe(
      'quayside/storefront',
    );
    await nadia.expectSound();
    await nadia.page.goto(address);
    await nadia.page.getByRole('button', { name: 'Open pull request' }).waitFor();
  });

  it('shows one part at a time on a phone, the end of what was said first', async () => {
    await nadia.page.setViewportSize({ width: 390, height: 600 });
    await nadia.page.reload();
    const log = nadia.page.getByRole('log');
    await log.getByText('The checks pass, and the change is on').waitFor();
    await nadia.page.waitForFunction(
      'scrollY > 0 && scrollY + innerHeight >= document.documentElement.scrollHeight - 2',
    );
    const details = await nadia.page.getByRole('tab', { name: 'Details' }).boundingBox();
    expect(details?.y).toBeGreaterThanOrEqual(0);
    await nadia.page.getByRole('tab', { name: 'Details' }).click();
    await nadia.page.getByRole('region', { name: 'Facts' }).waitFor();
    expect(await log.isVisible()).toBe(false);
    await nadia.page.getByRole('tab', { name: 'Changes' }).click();
    await nadia.page.getByRole('tabpanel', { name: 'Changes' }).waitFor();
    expect(await nadia.page.getByRole('region', { name: 'Facts' }).isVisible()).toBe(false);
    await nadia.page.getByRole('tab', { name: 'Conversation' }).click();
    await log.waitFor();
    await nadia.expectSound();
    await nadia.page.getByRole('tab', { name: 'Files' }).click();
  });

  it('finds the pull request of the branch', async () => {
    const facts = nadia.page.getByRole('region', { name: 'Facts' });
    await nadia.page.getByRole('button', { name: 'Open pull request' }).click();
    const link = facts.getByRole('link', { name: /^#479 / });
    await link.waitFor();

    expect(await link.getAttribute('href')).toContain('quayside/storefront');
  });

  it('stops, resumes and goes on with a message', async () => {
    // The agent has ended: there is nothing to pause.
    expect(await nadia.page.getByRole('button', { name: 'Pause' }).isDisabled()).toBe(true);
    await nadia.page.getByRole('button', { name: 'Stop' }).click();
    const files = nadia.page.getByRole('tabpanel', { name: 'Files' });
    await files.getByText('These names are from').waitFor();
    await files.getByText('AGENTS.md', { exact: true }).waitFor();
    expect(await files.getByRole('button').count()).toBe(0);
    const facts = nadia.page.getByRole('region', { name: 'Facts' });
    await facts.getByText('Paused', { exact: true }).waitFor();
    await nadia.page.getByRole('tab', { name: 'Changes' }).click();
    const changes = nadia.page.getByRole('tabpanel', { name: 'Changes' });
    await changes.getByText('These changes are from').waitFor();
    await changes.locator('ins', { hasText: 'limit=2' }).waitFor();
    await nadia.page.getByRole('tab', { name: 'Files' }).click();
    await nadia.expectSound();
    await nadia.page.getByRole('button', { name: 'Resume' }).click();
    await nadia.page.getByRole('button', { name: 'AGENTS.md' }).waitFor();
    await nadia.page.getByLabel('Message').fill('What did you change?');
    await nadia.page.getByLabel('Message').press('Enter');
    await nadia.page.getByLabel('Message').press('Enter');
    const log = nadia.page.getByRole('log');
    await log.getByText('That is what I changed and committed').waitFor();
    expect(await log.getByText('What did you change?').count()).toBe(1);
  });

  it('shows what the network refused, and lets its owner allow it', async () => {
    const { page } = nadia;
    const value = {
      host: 'pypi.org',
      port: 443,
      method: 'CONNECT',
      reason: 'rule',
      rule: null,
      phase: 'setup',
    };
    const event = {
      kind: 'ConversationStateUpdateEvent',
      id: 'denied',
      timestamp: new Date().toISOString(),
      source: 'environment',
      key: 'EgressDenied',
      value,
    };
    const body = `id: 1\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
    const told = { contentType: 'text/event-stream', body };
    const sent: unknown[] = [];
    let streams = 0;
    await page.route('**/events/stream*', async (route) => {
      streams += 1;
      await route.fulfill(streams === 1 ? told : { status: 204 });
    });
    await page.route('**/egress/allow', async (route) => {
      sent.push(route.request().postDataJSON());
      await route.fulfill({ json: { host: 'pypi.org', expires_at: new Date().toISOString() } });
    });
    await page.reload();
    const item = page.getByRole('log').getByRole('listitem').filter({ hasText: 'pypi.org' });
    await item.getByText('was refused by the proxy: no rule allows it, in the setup').waitFor();
    await item.getByRole('button', { name: 'Allow once' }).click();
    await item.getByText('within ten minutes').waitFor();
    let shared = ['sandbox_egress'];
    await page.route('**/api/v1/settings', async (route) => {
      const isRead = route.request().method() === 'GET';
      sent.push(...(isRead ? [] : [route.request().postDataJSON()]));
      await route.fulfill({
        json: isRead
          ? { sandbox_egress: { allow: ['npm'] }, from_organization: shared }
          : { message: 'Settings stored' },
      });
    });
    await item.getByRole('button', { name: 'Add a rule' }).click();
    await page.getByText('You have no rules of your own').waitFor();
    shared = [];
    await item.getByRole('button', { name: 'Add a rule' }).click();
    await item.getByText('Your settings allow it from now on.').waitFor();

    expect(sent).toEqual([
      { host: 'pypi.org', once: true },
      { sandbox_egress: { allow: ['npm', { host: 'pypi.org' }] } },
    ]);
    // About the streams that end.
    await nadia.forgetComplaints();
    await nadia.expectSound();
    await page.unrouteAll({ behavior: 'wait' });
    await page.reload();
    await page.getByRole('log').getByText('What did you change?').waitFor();
    await nadia.forgetComplaints();
  });

  it('lists what the sandbox asked the network for, and who refused it: the proxy or the host', async () => {
    const { page } = nadia;
    const request = {
      at: new Date().toISOString(),
      port: 443,
      rule: null,
      phase: 'agent',
      method: null,
      path: null,
    };
    const list = [
      { ...request, host: 'pypi.org', denied: 'rule', status: null },
      {
        ...request,
        host: 'api.example.com',
        method: 'PUT',
        path: '/x',
        denied: null,
        rule: '*.example.com',
        status: 403,
      },
      {
        ...request,
        host: 'git.example.com',
        denied: null,
        rule: '*.example.com',
        status: null,
        phase: 'setup',
      },
    ];
    const sent: unknown[] = [];
    await page.route('**/egress/log', (route) => route.fulfill({ json: list }));
    await page.route('**/egress/allow', async (route) => {
      sent.push(route.request().postDataJSON());
      await route.fulfill({ json: { host: 'pypi.org', expires_at: new Date().toISOString() } });
    });
    await page.getByRole('tab', { name: 'Network' }).click();
    const asked = page.getByRole('list', { name: 'requests' }).getByRole('listitem');
    await asked.filter({ hasText: 'PUT api.example.com/x' }).getByText('The host answered 403').waitFor();
    await asked.filter({ hasText: 'git.example.com' }).getByText('Passed through, in the setup').waitFor();
    const refused = asked.filter({ hasText: 'pypi.org was refused by the proxy: no rule allows it' });
    await refused.getByRole('button', { name: 'Add a rule' }).waitFor();
    await refused.getByRole('button', { name: 'Allow once' }).click();
    await refused.getByText('within ten minutes').waitFor();
    expect(await asked.getByRole('button').count()).toBe(2);
    expect(sent).toEqual([{ host: 'pypi.org', once: true }]);
    await nadia.expectSound();
    await page.unrouteAll({ behavior: 'wait' });
    await page.getByRole('tab', { name: 'Files' }).click();
  });

  it('keeps what was typed when the session ends', async () => {
    const message = nadia.page.getByLabel('Message');
    await message.fill('It took long to write this.');
    // Not before it is sent: what the page asks for by itself would end the session first, and there would be no button.
    await nadia.page.route('**/send-message', async (route) => {
      await nadia.loseSession();
      await route.continue();
    });
    await nadia.page.getByRole('button', { name: 'Send' }).click();
    await nadia.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await nadia.page.unrouteAll({ behavior: 'wait' });
    await nadia.forgetComplaints();
    await nadia.expectSound();
    await nadia.page.getByLabel('API key').fill(demo.apiKey);
    await nadia.page.getByRole('button', { name: 'Sign in' }).click();
    await message.waitFor();

    expect(await message.inputValue()).toBe('It took long to write this.');
    await message.fill('');
  });

  it('offers repositories of all hosts, the last used first, and the branches of the chosen one', async () => {
    const conversation = nadia.page.url();
    const [storefront] = demo.worlds.github.repositories;
    Object.assign(storefront ?? {}, { branches: ['main', 'release/7'] });
    await nadia.open('Conversations');
    await nadia.page.getByText('New conversation', { exact: true }).click();
    const field = (name: string): Locator => nadia.page.getByRole('combobox', { name });
    // The browser draws them, where no test can press them.
    const choices = async (name: string): Promise<string[]> => {
      const list = await field(name).getAttribute('list');
      const options = nadia.page.locator(`[id="${list}"] option`);
      return options.evaluateAll((all) =>
        all.map((each) => `${each.getAttribute('value')} ${each.textContent}`.trim()),
      );
    };
    // The hosts are asked one by one, and the service for what was used last.
    await until(async () => {
      const found = await choices('Repository');
      return (
        found[0] === 'quayside/storefront GitHub' && found.some((choice) => choice.endsWith('Bitbucket'))
      );
    });
    await nadia.expectSound();
    await field('Repository').fill('label');
    await until(async () => {
      const found = await choices('Repository');
      return (
        found.every((choice) => choice.includes('label')) && found.join().includes('quayside/label-printer')
      );
    });
    await field('Repository').fill('quayside/storefront');
    await field('Branch').fill('rel');
    await until(async () => (await choices('Branch')).includes('release/7'));
    await field('Branch').fill('release/7');
    await nadia.expectSound();

    await nadia.page.getByLabel('Message').fill('Say hello.');
    const sent = nadia.page.waitForRequest((request) => request.method() === 'POST');
    await nadia.page.route('**/api/v1/app-conversations', (route) => route.abort());
    await nadia.page.getByRole('button', { name: 'Start conversation' }).click();
    expect((await sent).postDataJSON()).toMatchObject({
      git_provider: 'github',
      selected_repository: 'quayside/storefront',
      selected_branch: 'release/7',
    });
    await nadia.page.getByText('The start failed').waitFor();
    await nadia.forgetComplaints();
    await nadia.page.unroute('**/api/v1/app-conversations');
    await nadia.page.goto(conversation);
  });

  it('tells how long ago something was while nothing changes', async () => {
    const patient = await Visitor.come(browser, demo.url);
    await patient.page.clock.install();
    await patient.signIn(demo.apiKey);
    await patient.open('Conversations');
    await patient.page.getByRole('time').first().waitFor();
    await patient.page.clock.fastForward('02:00:00');
    await patient.page.getByRole('time').getByText('2 hr. ago').first().waitFor();

    const news = patient.page.getByRole('time').getByText('just now');
    await news.first().waitFor({ state: 'detached' });

    expect(await news.count()).toBe(0);
    await patient.leave();
  });

  it('does not show one user what another does', async () => {
    const address = nadia.page.url();
    // The list is asked for before the user is made, and arrives afterwards.
    const isOfUsers = ({ pathname }: URL): boolean => pathname === '/api/v1/users';
    const made = nadia.page.waitForResponse(
      (answer) => answer.request().method() === 'POST' && isOfUsers(new URL(answer.url())),
    );
    await nadia.page.route(
      isOfUsers,
      async (route) => {
        const response = await route.fetch();
        await made;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await nadia.open('Administration');
    await form('Invitation').getByLabel('Email').fill('bo@quayside.example');
    await form('Invitation').getByRole('button', { name: 'Create user' }).click();
    await row('bo@quayside.example').getByRole('button', { name: 'Keys' }).click();
    await form('Key of bo@quayside.example').getByLabel('Name').fill('laptop');
    await form('Key of bo@quayside.example').getByLabel('Expires').fill('2099-12-31');
    await form('Key of bo@quayside.example').getByRole('button', { name: 'Create key' }).click();
    const dialog = nadia.page.getByRole('dialog');
    const key = await dialog.locator('code').innerText();
    await nadia.expectSound();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await row('bo@quayside.example').getByText('Expires in').waitFor();

    const bo = await Visitor.come(browser, demo.url);
    // Pages loaded over http from another machine have no clipboard.
    await bo.page.addInitScript('delete Navigator.prototype.clipboard');
    await bo.signIn(key);
    expect(await bo.page.getByRole('link', { name: 'Administration' }).count()).toBe(0);
    await bo.open('Conversations');
    await bo.page.getByText('No conversations yet').waitFor();
    await bo.page.goto(address);
    await bo.page.getByText('There is no conversation of yours at this address.').waitFor();
    await bo.expectSound();
    await bo.open('Conversations');
    await bo.page.getByText('New conversation', { exact: true }).click();
    await bo.page.getByRole('link', { name: 'Choose a model first' }).waitFor();
    await bo.page.getByLabel('Message').fill('Without a model.');
    await bo.page.getByRole('button', { name: 'Start conversation' }).click();
    expect(await bo.page.getByRole('alert').innerText()).toMatch(/model/i);
    await bo.page.getByRole('link', { name: 'Choose a model first' }).click();
    const ownKey = bo.page.getByRole('form', { name: 'Key', exact: true });
    await ownKey.getByLabel('Name').fill('of bo');
    expect(await ownKey.getByLabel('Administer').count()).toBe(0);
    expect(await bo.page.getByRole('button', { name: 'Test this model' }).count()).toBe(0);
    await ownKey.getByRole('button', { name: 'Create key' }).click();
    await bo.page.getByRole('dialog', { name: 'Your new key' }).locator('code').waitFor();
    expect(await bo.page.getByRole('dialog').getByRole('button', { name: 'Copy' }).count()).toBe(0);
    await bo.leave();
  });

  it('disables a user until the user is enabled again, and gives each role', async () => {
    const { page } = nadia;
    await page.reload();
    const bo = row('bo@quayside.example');
    await bo.getByRole('button', { name: 'Keys' }).click();
    await form('Key of bo@quayside.example').getByLabel('Name').fill('dashboard');
    await form('Key of bo@quayside.example').getByLabel('Start and continue work').uncheck();
    await form('Key of bo@quayside.example').getByLabel('Change settings').uncheck();
    await form('Key of bo@quayside.example').getByRole('button', { name: 'Create key' }).click();
    const key = await page.getByRole('dialog').locator('code').innerText();
    await page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    await bo.getByText('May read', { exact: true }).waitFor();
    const statusOf = async (method: string): Promise<number> =>
      (await apiOf(demo, key).send(method, '/api/v1/api-keys')).status;
    expect([await statusOf('GET'), await statusOf('POST')]).toEqual([200, 403]);

    const guest = await Visitor.come(browser, demo.url);
    await guest.signIn(key);
    await bo.getByRole('button', { name: 'Disable' }).click();
    const dialog = page.getByRole('dialog', { name: 'Disable bo@quayside.example?' });
    expect(await dialog.getByLabel('Sandboxes').inputValue()).toBe('pause');
    await dialog.getByText('bo@quayside.example has').waitFor();
    await nadia.expectSound();
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await bo.getByText('disabled', { exact: true }).waitFor();
    await guest.page.reload();
    await guest.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await guest.leave();
    expect(await statusOf('GET')).toBe(401);

    await bo.getByRole('button', { name: 'Enable' }).click();
    await bo.getByText('disabled', { exact: true }).waitFor({ state: 'detached' });
    expect(await statusOf('GET')).toBe(200);
    for (const role of ['Administrator', 'Viewer', 'Member']) {
      await bo.getByRole('button', { name: 'Change role' }).click();
      const question = page.getByRole('dialog', { name: 'Change role bo@quayside.example?' });
      expect(await question.getByRole('button', { name: 'Change role' }).isDisabled()).toBe(true);
      await question.getByLabel('Role').selectOption(role);
      await nadia.expectSound();
      await question.getByRole('button', { name: 'Change role' }).click();
      await bo.getByText(role, { exact: true }).waitFor();
    }
  });

  it('offers nobody what the service refuses', async () => {
    const api = apiOf(demo);
    const [user] = jsonList(await api.get('/api/v1/users?email__eq=bo@quayside.example'), 'items');
    const [organization] = jsonList(await api.get('/api/organizations'), 'items');
    const id = jsonText(user, 'id') ?? '';
    const as = async (role: string, scopes: string[]): Promise<Visitor> => {
      await api.send('PATCH', `/api/organizations/${jsonText(organization, 'id')}/members/${id}`, { role });
      const key = await api.post('/api/v1/api-keys', { name: role, user_id: id, scopes });
      const bo = await Visitor.come(browser, demo.url);
      await bo.signIn(jsonText(key, 'key') ?? '');
      return bo;
    };

    const admin = await as('admin', ['read', 'run', 'settings', 'admin']);
    await admin.open('Administration');
    const users = admin.page.getByRole('list').filter({ hasText: 'nadia@' });
    await users.getByRole('button', { name: 'Remove' }).first().waitFor();
    const owner = users.getByRole('listitem').filter({ hasText: 'admin@localhost' });
    expect(await owner.getByRole('button').count()).toBe(0);
    await admin.leave();

    const viewer = await as('viewer', ['read']);
    await viewer.page.getByText('You may only read').waitFor();
    await viewer.page.getByText('No git host is connected').waitFor();
    await viewer.expectSound();
    for (const [page, offer] of [
      ['Conversations', 'New conversation'],
      ['Automations', 'New automation'],
    ] as const) {
      await viewer.open(page);
      await viewer.page.getByText(`No ${page.toLowerCase()} yet`).waitFor();
      expect(await viewer.page.getByText(offer).count()).toBe(0);
    }
    await viewer.expectSound();
    await viewer.leave();
    await (await as('member', ['read'])).leave();
  });

  it('shares settings with all users, who see whose they are', async () => {
    const { page } = nadia;
    const api = apiOf(demo);
    const [user] = jsonList(await api.get('/api/v1/users?email__eq=bo@quayside.example'), 'items');
    const made = await api.post('/api/v1/api-keys', { name: 'of the test', user_id: jsonText(user, 'id') });
    await page.reload();
    await form('Shared agent settings').getByLabel('Step limit').fill('77');
    await form('Shared agent settings').getByRole('button', { name: 'Save' }).click();
    await form('Shared agent settings').getByText('Saved.').waitFor();
    await form('Shared secret').getByLabel('Name').fill('SHARED_TOKEN');
    await form('Shared secret').getByLabel('Value').fill('a value that no answer has');
    await form('Shared secret').getByRole('button', { name: 'Save' }).click();
    await form('Shared secret').getByText('SHARED_TOKEN is stored.').waitFor();
    await form('Shared tool server').getByLabel('URL or command').fill('https://tools.example.com/mcp');
    await form('Shared tool server').getByRole('button', { name: 'Save' }).click();
    await row('https://tools.example.com/mcp').waitFor();
    await nadia.expectSound();
    await form('Shared agent settings').scrollIntoViewIfNeeded();
    await nadia.shoot('shared-settings');

    const bo = await Visitor.come(browser, demo.url);
    await bo.signIn(jsonText(made, 'key') ?? '');
    await bo.open('Settings');
    const agent = bo.page.getByRole('form', { name: 'Agent', exact: true });
    const ofBo = (text: string): Locator =>
      bo.page.getByRole('listitem').filter({ hasText: text }).filter({ hasText: SHARED });
    await ofBo('SHARED_TOKEN').waitFor();
    await ofBo('https://tools.example.com/mcp').waitFor();
    expect(await ofBo('SHARED_TOKEN').getByRole('button').count()).toBe(0);
    expect(await agent.getByLabel('Step limit').inputValue()).toBe('77');
    await agent.getByText(SHARED).waitFor();
    await bo.expectSound();
    await agent.getByText(SHARED).scrollIntoViewIfNeeded();
    await bo.shoot('from-organization');
    await agent.getByLabel('Step limit').fill('78');
    await agent.getByRole('button', { name: 'Save' }).click();
    await agent.getByText(SHARED).waitFor({ state: 'detached' });
    expect(await agent.getByLabel('Step limit').inputValue()).toBe('78');
    await bo.leave();

    await row('SHARED_TOKEN').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('No secret is shared.').waitFor();
    await row('https://tools.example.com/mcp').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row('https://tools.example.com/mcp').waitFor({ state: 'detached' });
  });

  it('shows administrators who did what, and all sandboxes', async () => {
    await nadia.page.reload();
    const sandboxes = nadia.page.getByRole('region', { name: 'Sandboxes of all users' });
    await sandboxes.getByText('admin@localhost').first().waitFor();
    const entries = nadia.page.getByRole('region', { name: 'Entries of the audit' });
    await entries.getByText('Conversation: start').first().waitFor();
    await nadia.shoot('administration');
    await nadia.page.getByLabel('Action').selectOption('user.create');
    await entries.getByText('Conversation: start').first().waitFor({ state: 'detached' });

    expect(await entries.getByText('User: create').count()).toBeGreaterThan(0);
    await sandboxes.getByRole('button', { name: 'Stop' }).first().click();
    await sandboxes.getByText('paused').waitFor();
    await nadia.expectSound();
  });

  it('signs out', async () => {
    await nadia.page.getByRole('button', { name: 'Sign out' }).click();
    await nadia.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await nadia.page.goto('/console/settings');
    await nadia.page.getByRole('heading', { name: 'Sign in' }).waitFor();

    expect(await nadia.hasSession()).toBe(false);
  });
});
