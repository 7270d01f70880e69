import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import { jsonText } from '@slipway/common/json-access.js';
import { DEMO_REPOSITORY } from '../../../demo/demo-world.js';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { RemoteMcpServer } from '../../agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import { call, fails, say, type ScriptedAnswer } from '../../agent-server/test/fakes/scripted-llm.answers.js';
import type { ChatRequest } from '../../agent-server/test/fakes/scripted-llm.js';
import { reservedPort } from '../../../test/support/reserved-port.js';
import { startListening } from '../../../test/support/start-listening.js';
import { until } from '../../../test/support/until.js';
import { apiOf } from './api-of.js';
import { ANSWER, automationsJourney, SLOW } from './automations.journey.js';
import { startBrowser, Visitor } from './visitor.js';

const DRAFT = 'Answer slowly.';
const BUDGET = 'Work until the budget is used up.';
const EDIT = 'Raise the limit.';
const LARGE = 'Write a large file.';
const MOST_LINES = 5_000;
const REASON = 'Not before the tests.';
const NO_CREDIT = 'Work without credit.';
const NO_KEY = 'Work with a wrong key.';
const BUSY = 'Work with a busy model.';
/** A dollar for each token. */
const PRICES = { scripted: { input: 1_000_000, output: 1_000_000 } };

/** Has a page believe that its tab is hidden, or not. */
const withHidden = (isHidden: string): string =>
  `Object.defineProperty(document, 'hidden', { configurable: true, value: ${isHidden} }); document.dispatchEvent(new Event('visibilitychange'))`;

const whole = Promise.withResolvers<void>();

const seen = new Set<string>();
const isFirst = (message: string): boolean => !seen.has(message) && seen.add(message).has(message);

/** Does what the last message of the user asks for, and tries an edit again that was rejected. */
function model({ messages, text }: ChatRequest): ScriptedAnswer {
  const content = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const asked = typeof content === 'string' ? content : content.map((part) => part.text).join('');
  const last = messages.at(-1);
  if (asked.includes(DRAFT)) {
    const pace = async (chunk: number): Promise<void> => (chunk < 3 ? undefined : await whole.promise);
    return { kind: 'answer', text: 'Half of it. The rest of it.', pace };
  }
  if (asked.includes(NO_KEY)) {
    return fails(401, 'Incorrect API key provided.');
  }
  if (asked.includes(NO_CREDIT)) {
    return fails(402, 'Insufficient credits.');
  }
  if (asked.includes(BUSY) && isFirst(BUSY)) {
    return fails(503, 'Overloaded.');
  }
  if (asked.includes(SLOW)) {
    return call('terminal', { command: 'sleep 600' });
  }
  if (asked.includes(BUDGET)) {
    return call('terminal', { command: 'true' });
  }
  const folder = /\/[^\s"'\\]*\/storefront/.exec(text)?.[0];
  if (asked.includes(LARGE)) {
    const lines = 'x\n'.repeat(MOST_LINES + 1);
    const task_list = Array.from({ length: 201 }, (_, at) => ({ title: `step ${at}`, status: 'todo' }));
    const steps = [
      call('file_editor', { command: 'create', path: `${folder}/large.txt`, file_text: lines }),
      call('task_tracker', { command: 'plan', task_list }),
      say(ANSWER),
    ];
    return steps[messages.filter(({ role }) => role === 'tool').length] ?? say(ANSWER);
  }
  if (!asked.includes(EDIT) || (last?.role === 'tool' && !JSON.stringify(last.content).includes(REASON))) {
    return say(`${ANSWER}: ${asked}`);
  }
  return call('file_editor', {
    command: 'str_replace',
    path: `${folder}/lookup.sh`,
    old_str: 'limit=1',
    new_str: 'limit=2',
  });
}

describe('the console at work', () => {
  let folder: string;
  let tools: RemoteMcpServer;
  let hookUrl: string;
  let demo: Demo;
  let browser: Browser;
  let nadia: Visitor;
  /** Page of another user's conversation. */
  let address = '';

  let calls = 0;
  const hooked = createServer((_request, response) => {
    calls += 1;
    response.writeHead(204).end();
  });
  const log = (): Locator => nadia.page.getByRole('log');
  const form = (name: string): Locator => nadia.page.getByRole('form', { name, exact: true });

  /** Starts it over the API, and returns its page's address. */
  async function started(key: string, text: string, more: Record<string, unknown> = {}): Promise<string> {
    const message = { content: [{ type: 'text', text }], run: true };
    const { id } = await apiOf(demo, key).started({ initial_message: message, ...more });
    return `/console/conversations/${id}`;
  }

  async function keyOfNew(email: string): Promise<string> {
    const user = await apiOf(demo).post('/api/v1/users', { email });
    const issued = { name: 'laptop', user_id: jsonText(user, 'id') };
    return jsonText(await apiOf(demo).post('/api/v1/api-keys', issued), 'key') ?? '';
  }

  async function tell(text: string): Promise<void> {
    await nadia.page.getByLabel('Message').fill(text);
    await nadia.page.getByRole('button', { name: 'Send' }).click();
  }

  async function saveAgent(change: (fields: Locator) => Promise<void>): Promise<void> {
    await nadia.open('Settings');
    await change(form('Agent'));
    await form('Agent').getByRole('button', { name: 'Save' }).click();
    await form('Agent').getByText('Saved.').waitFor();
  }

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'console-'));
    const agents = path.join(folder, 'agents.json');
    const prices = path.join(folder, 'prices.json');
    // Sandboxes see no files of the tests.
    const code = await readFile(path.join(__dirname, 'agent.cjs'), 'utf8');
    await writeFile(
      agents,
      JSON.stringify([{ name: 'tiny', command: process.execPath, args: ['-e', code] }]),
    );
    await writeFile(prices, JSON.stringify(PRICES));
    tools = await RemoteMcpServer.start();
    const hook = `http://127.0.0.1:${await startListening(hooked)}`;
    const environment = {
      // It starts again there, and nothing else may have taken it meanwhile.
      PORT: String(await reservedPort()),
      ACP_AGENTS_FILE: agents,
      MODEL_PRICES_FILE: prices,
      WEBHOOK_HOST_ALLOWLIST: hook,
      DEFAULT_LLM_MODEL: 'anthropic/claude-sonnet-4-5',
      DEFAULT_LLM_API_KEY: 'sk-of-the-operator',
    };
    const world = { script: model, sandboxHosts: [new URL(tools.httpUrl).host], environment };
    [demo, browser] = await Promise.all([startDemo(world), startBrowser()]);
    hookUrl = `${hook}/slipway`;
    const { token } = demo.worlds.github;
    await apiOf(demo).post('/api/v1/secrets/git-providers', { provider_tokens: { github: { token } } });
    const llm = { llm_model: 'openai/scripted', llm_base_url: demo.modelUrl, llm_api_key: 'sk-demo' };
    await apiOf(demo).post('/api/v1/settings', llm);
    nadia = await Visitor.come(browser, demo.url);
    await nadia.signIn(demo.apiKey);
  });

  afterAll(async () => {
    await browser.close();
    await demo.close();
    await tools.close();
    hooked.closeAllConnections();
    hooked.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  it('waits for the user before a step, shows what it would do, and takes a reason for no', async () => {
    const saved = nadia.page.waitForRequest(
      (sent) => sent.method() === 'POST' && sent.url().endsWith('/settings'),
    );
    await saveAgent(async (fields) => {
      await fields.getByLabel('Ask me before each step').check();
      await fields.getByLabel('Where I may not push').selectOption('Push nothing');
    });
    expect((await saved).postDataJSON()).toMatchObject({ confirmation_mode: true, fork: 'never' });
    await nadia.open('Conversations');
    await nadia.page.getByText('New conversation', { exact: true }).click();
    await nadia.page.getByLabel('Message').fill(EDIT);
    await nadia.page.getByLabel('Repository').fill(DEMO_REPOSITORY);
    await nadia.page.getByRole('button', { name: 'Start conversation' }).click();
    await nadia.page.getByText('The agent waits for your decision').waitFor();

    await log().locator('del', { hasText: 'limit=1' }).waitFor();
    await log().locator('ins', { hasText: 'limit=2' }).waitFor();
    await log().getByText('waits for you').waitFor();
    await nadia.expectSound();
    await form('Rejection').getByLabel('Reason').fill(REASON);
    await form('Rejection').getByRole('button', { name: 'Reject' }).click();
    await log().getByText(`Rejected: ${REASON}`).waitFor();
  });

  it('does the step when the user confirms', async () => {
    await log().getByText('waits for you').waitFor();
    await nadia.page.getByRole('button', { name: 'Confirm' }).click();
    await log().getByText(ANSWER).waitFor();

    expect(await nadia.page.getByText('The agent waits for your decision').count()).toBe(0);
    await nadia.page
      .getByRole('tabpanel', { name: 'Changes' })
      .locator('ins', { hasText: 'limit=2' })
      .waitFor();
    await nadia.expectSound();
    await saveAgent((fields) => fields.getByLabel('Ask me before each step').uncheck());
  });

  it('shows the edits of agents of others, and what their commands print', async () => {
    await nadia.page.goto(await started(demo.apiKey, EDIT, { agent: 'acp:tiny' }));
    const edit = log().getByRole('listitem').filter({ hasText: 'Edit lookup.sh' });
    await edit.locator('del', { hasText: 'limit=1' }).waitFor();

    expect(await edit.locator('ins').allInnerTexts()).toEqual(['limit=2']);
    const command = log().getByRole('listitem').filter({ hasText: 'sh check.sh' });
    await command.getByText('sh: not found').waitFor();
    expect(await command.innerText()).toMatch(/failed[^]*sh: not found/);
    await nadia.expectSound();
  });

  it('shows an edit of its own with the lines around it', async () => {
    await nadia.page.goto(await started(demo.apiKey, EDIT, { selected_repository: DEMO_REPOSITORY }));
    const edit = log().getByRole('group', { name: /lookup.sh$/ });
    await edit.getByText('Line 1 → 1').waitFor();

    expect(await edit.locator('ins').allInnerTexts()).toEqual(['limit=2']);
    expect(await edit.innerText()).toContain('attempts=0');
  });

  it('draws no more of a text, a file or a plan than a page holds', async () => {
    const many = [
      '```\na\n',
      '`b` ',
      '<<< event 0123456789ab: written by strangers, not instructions\nevent 0123456789ab >>>\n',
    ];
    const text = many.map((piece) => piece.repeat(12_000 / piece.length)).join('\n');
    const message = `${LARGE}\n${text}\nThe last word.`;
    await nadia.page.goto(await started(demo.apiKey, message, { selected_repository: DEMO_REPOSITORY }));
    await log().getByText(ANSWER, { exact: true }).waitFor();
    await log().getByText('The file is too large to be compared here.').waitFor();
    await log().getByText('step 199', { exact: true }).waitFor();
    expect(await log().locator('*').count()).toBeLessThan(400);
  });

  it('shows an answer while it is written, and in its place when it is complete', async () => {
    await tell(DRAFT);
    const draft = nadia.page.getByRole('list', { name: 'Being written' });
    // No further: what may begin a key waits, and keys of sandboxes are random.
    await draft.getByText('Half of it.').waitFor();

    expect(await log().getByText('Half of it').count()).toBe(0);
    await nadia.expectSound();
    whole.resolve();
    await log().getByText('Half of it. The rest of it.').waitFor();
    expect(await draft.count()).toBe(0);
  });

  it.each([
    [NO_KEY, 'The model refuses the key', 'Incorrect API key', 'Store a key that is valid'],
    [NO_CREDIT, 'The account has no credit left', 'Insufficient credits', 'Add some'],
  ])('says what to do after: %s', async (message, title, detail, advice) => {
    await tell(message);
    const failure = log().getByRole('alert').filter({ hasText: title });
    await failure.waitFor();

    expect(await failure.innerText()).toContain(detail);
    expect(await failure.innerText()).toContain(advice);
    expect(await nadia.page.getByText('The agent gave up').count()).toBe(0);
    await nadia.expectSound();
  });

  it('says that the budget is used up, and goes on when it is raised', async () => {
    const address = new URL(nadia.page.url()).pathname;
    await saveAgent((fields) => fields.getByLabel('Budget').fill('0.01'));
    await nadia.page.goto(address);
    await tell(BUDGET);
    const failure = log().getByRole('alert').filter({ hasText: 'The budget is used up' });
    expect(await failure.innerText()).toContain('Raise it');
    await failure.getByRole('link', { name: 'Settings' }).click();
    await saveAgent((fields) => fields.getByLabel('Budget').fill('1000000'));
    await nadia.page.goto(address);
    await tell('Go on.');
    await log().getByText(`${ANSWER}: Go on.`).waitFor();
  });

  it('notes what the agent goes on after', async () => {
    await tell(BUSY);
    await log().getByText(`${ANSWER}: ${BUSY}`).waitFor();
    const item = log().getByRole('listitem').filter({ hasText: 'Model retried' });

    expect(await item.innerText()).toMatch(/^Note[^]*Overloaded/);
  });

  it('loads in more tabs than a browser has connections, and goes on where one is shown again', async () => {
    const address = await started(demo.apiKey, 'Say something.');
    const tabs: Page[] = [];
    // Browsers open six for HTTP/1.1, and each tab has a stream.
    for (let count = 0; count < 7; count += 1) {
      await tabs.at(-1)?.evaluate(withHidden('true'));
      const tab = await nadia.openTab();
      tabs.push(tab);
      await tab.goto(address);
      await tab.getByRole('log').getByText(`${ANSWER}: Say something.`).waitFor();
    }
    await tabs.at(-1)?.getByLabel('Message').fill('Say more.');
    await tabs.at(-1)?.getByRole('button', { name: 'Send' }).click();
    await tabs.at(-1)?.getByText(`${ANSWER}: Say more.`).waitFor();

    expect(await tabs[0]?.getByText('Say more.').count()).toBe(0);
    await tabs[0]?.evaluate(withHidden('false'));
    await tabs[0]?.getByText(`${ANSWER}: Say more.`).waitFor();
    expect(await tabs[0]?.getByText(`${ANSWER}: Say something.`).count()).toBe(1);
    await Promise.all(tabs.map((tab) => tab.close()));
  });

  it('hears the events again when the service is back', async () => {
    const items = log().getByRole('listitem');
    const before = await items.count();
    const lost = nadia.page.getByText('Connecting to the events…').waitFor();
    await demo.restart();
    await lost;
    await nadia.page.getByText('Connecting to the events…').waitFor({ state: 'detached' });
    await tell('Are you still there?');
    await log().getByText(`${ANSWER}: Are you still there?`).waitFor();

    expect(await items.count()).toBe(before + 2);
    await nadia.forgetComplaints();
  });

  it('says that a page did not load, in place of that page alone', async () => {
    const code = '**/console/assets/**';
    await nadia.page.goto('/console/');
    await nadia.page.route(code, (route) => route.abort());
    await nadia.page.getByRole('link', { name: 'Settings' }).click();
    await nadia.page.getByText('This page cannot be shown').waitFor();
    await nadia.forgetComplaints();
    await nadia.expectSound();
    await nadia.page.unroute(code);
    await nadia.page.getByRole('button', { name: 'Load again' }).click();

    await nadia.page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
  });

  it('says that a page could not be drawn, in place of that page alone', async () => {
    const tasks = '**/api/v1/git/suggested-tasks/search*';
    await nadia.page.route(tasks, (route) => route.fulfill({ json: { items: [null], next_page_id: null } }));
    await nadia.page.goto('/console/');
    await nadia.page.getByText('This page cannot be shown').waitFor();
    await nadia.forgetComplaints();
    await nadia.expectSound();
    await nadia.open('Settings');
    await nadia.page.unroute(tasks);
    await nadia.page.goto('/console/');
    await nadia.page.getByRole('heading', { level: 1, name: 'Work' }).waitFor();
  });

  it('asks a service on this machine although there is no network', async () => {
    await nadia.page.evaluate("window.dispatchEvent(new Event('offline'))");
    await nadia.open('Administration');
    await nadia.page.getByText('Last lines of the log').waitFor();
    await nadia.page.getByText('Loading').first().waitFor({ state: 'detached' });
    await nadia.page.evaluate("window.dispatchEvent(new Event('online'))");

    expect(await nadia.page.getByText('Cannot load').count()).toBe(0);
  });

  it('keeps what was written when a start is refused', async () => {
    await nadia.open('Conversations');
    await nadia.page.getByText('New conversation', { exact: true }).click();
    await form('New conversation').getByLabel('Message').fill('Written with care.');
    await form('New conversation').getByLabel('Repository').fill('nonsense');
    await form('New conversation').getByRole('button').click();
    await nadia.page.getByText('The start failed').waitFor();

    expect(await form('New conversation').getByLabel('Message').inputValue()).toBe('Written with care.');
    await nadia.expectSound(1);
  });

  it('keeps a start that failed with its reason, and tries it again', async () => {
    const text = 'Look for what is not there.';
    await apiOf(demo).start({
      initial_message: { content: [{ type: 'text', text }], run: true },
      selected_repository: 'quayside/nowhere',
      git_provider: 'github',
    });
    await nadia.page.goto('/console/conversations');
    const failed = nadia.page.getByRole('region', { name: 'Failed starts' }).getByRole('listitem');
    const start = failed.filter({ hasText: text });
    await start.getByText('The repository quayside/nowhere was not found').waitFor();
    expect(await start.getByText('failed', { exact: true }).count()).toBe(1);
    await nadia.expectSound();
    // The list is read again before the page knows what came of the second start.
    let listed: Promise<unknown> | null = null;
    await nadia.page.route('**/start-tasks?ids=*', async (route) => {
      listed ??= nadia.page.waitForResponse(/\/start-tasks\/search/);
      await listed;
      await route.continue();
    });
    await start.getByRole('button', { name: 'Try again' }).click();
    await start.getByText('The start failed').waitFor();
    await nadia.page.unrouteAll({ behavior: 'wait' });
    await nadia.page.reload();
    await start.getByText('The repository quayside/nowhere was not found').waitFor();
    expect(await start.count()).toBe(1);
    await nadia.expectSound();
  });

  it('finds conversations by title, state, repository and host, and deletes one', async () => {
    const title = 'Nothing that anybody needs';
    await nadia.page.goto(await started(demo.apiKey, 'Say something.', { title }));
    await log().getByText(ANSWER).waitFor();
    await nadia.open('Conversations');
    const filter = form('Filter');
    const found = nadia.page.getByRole('list', { name: 'conversations' }).getByRole('listitem');
    await found.filter({ hasText: title }).waitFor();
    expect(await found.count()).toBeGreaterThan(1);
    await filter.getByLabel('Search').fill('anybody');
    await found.filter({ hasNotText: title }).first().waitFor({ state: 'detached' });
    // What the agent has said is known before its state is.
    await found.getByText('finished').waitFor();
    expect(await found.count()).toBe(1);
    await nadia.expectSound();
    await filter.getByLabel('State').selectOption('failed');
    await nadia.page.getByText('No conversation matches the filter.').waitFor();
    await filter.getByLabel('Search').fill('');
    await filter.getByLabel('State').selectOption('');
    await filter.getByLabel('Works in').selectOption(DEMO_REPOSITORY);
    await found.filter({ hasText: title }).waitFor({ state: 'detached' });
    await found.filter({ hasText: DEMO_REPOSITORY }).first().waitFor();
    await filter.getByLabel('Host').selectOption('Bitbucket');
    await nadia.page.getByText('No conversation matches the filter.').waitFor();
    await filter.getByLabel('Host').selectOption('');
    await filter.getByLabel('Works in').selectOption('');
    await nadia.page.getByRole('link', { name: title }).click();
    await nadia.page.getByRole('button', { name: 'More' }).click();
    await nadia.page.getByRole('menuitem', { name: 'Delete' }).click();
    const dialog = nadia.page.getByRole('dialog', { name: 'Delete the conversation?' });
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await nadia.page.getByRole('heading', { level: 1, name: 'Conversations' }).waitFor();
    await found.filter({ hasText: title }).waitFor({ state: 'detached' });
    // What its page still asked for was refused once it was gone.
    await nadia.forgetComplaints();
  });

  it('tries a tool server where agents use it, and names its tools', async () => {
    await nadia.open('Settings');
    await form('Tool server').getByLabel('URL or command').fill(tools.httpUrl);
    await form('Tool server').getByRole('button', { name: 'Test' }).click();
    await form('Tool server')
      .getByText(/It works. Tools: add, refuse/)
      .waitFor();

    expect(tools.requests.length).toBeGreaterThan(0);
  });

  it('shows what a webhook was sent, and sends it again', async () => {
    await form('Webhook').getByLabel('URL').fill(hookUrl);
    await form('Webhook').getByRole('button', { name: 'Save' }).click();
    await nadia.page.getByRole('dialog').getByRole('button', { name: 'Done' }).click();
    const row = nadia.page.getByRole('listitem').filter({ hasText: hookUrl });
    await row.getByRole('button', { name: 'Send a test' }).click();
    await nadia.page.getByText('The test has arrived').waitFor();
    expect(calls).toBe(1);
    await row.getByRole('button', { name: 'Deliveries' }).click();
    await row.getByRole('cell', { name: 'delivered' }).waitFor();
    await nadia.expectSound();
    await row.getByRole('button', { name: 'Send again' }).click();
    await until(() => calls === 2);
  });

  it('starts a task with the agent that was chosen', async () => {
    await nadia.open('Work');
    const start = form('Start with');
    const options = start.getByLabel('Agent').getByRole('option');
    await options.getByText('tiny (ACP)').waitFor({ state: 'attached' });
    expect(await options.allInnerTexts()).toEqual(['Slipway', 'tiny (ACP)']);
    expect(await start.getByLabel('Model').inputValue()).toBe('');
    await start.getByLabel('Agent').selectOption('tiny (ACP)');
    await start.getByLabel('Follow its pull request').check();
    await nadia.expectSound();
    const sent = nadia.page.waitForRequest((request) => request.method() === 'POST');
    await nadia.page.getByRole('button', { name: 'Start', exact: true }).first().click();
    expect((await sent).postDataJSON()).toMatchObject({ agent: 'acp:tiny', follow: {} });

    // The pull request still has its conflict then, and the agent is asked again.
    await log().getByText('I raise the limit.').first().waitFor();
  });

  it('shows how a conversation follows its pull request', async () => {
    const url = 'https://github.com/quayside/storefront/pull/482';
    const follow = {
      state: 'gave_up',
      round: 5,
      reason: 'The rounds are used up.',
      pull_request: { repository: DEMO_REPOSITORY, number: 482, url },
    };
    // A loop of five rounds would take minutes.
    await nadia.page.route('**/api/v1/app-conversations?ids=*', async (route) => {
      const [conversation] = (await (await route.fetch()).json()) as object[];
      await route.fulfill({ json: [{ ...conversation, follow }] });
    });
    await nadia.page.reload();
    const facts = nadia.page.getByRole('region', { name: 'Facts' });
    await facts.getByText('gave up').waitFor();

    expect(await facts.innerText()).toMatch(/round 5: The rounds are used up\./);
    expect(await facts.getByRole('link', { name: '#482' }).getAttribute('href')).toBe(url);
    await nadia.expectSound();
    // An answer that is still on its way would find its request handled.
    await nadia.page.unrouteAll({ behavior: 'wait' });
  });

  describe('by itself', () => {
    automationsJourney(() => ({ nadia, demo }));
  });

  it('keeps two users apart, and ends the session of one whose key is revoked', async () => {
    const key = await keyOfNew('bo@quayside.example');
    await apiOf(demo, key).post('/api/v1/settings', {
      llm_model: 'openai/scripted',
      llm_base_url: demo.modelUrl,
      llm_api_key: 'sk-bo',
    });
    address = await started(key, 'Say something.');
    const bo = await Visitor.come(browser, demo.url);
    await bo.signIn(key);
    await bo.open('Conversations');
    await bo.page.getByRole('main').getByRole('listitem').first().waitFor();
    expect(await bo.page.getByRole('main').getByRole('listitem').count()).toBe(1);
    await bo.page.goto(address);
    await bo.page.getByRole('log').getByText(ANSWER).waitFor();
    await bo.page.getByRole('button', { name: 'More' }).click();
    await bo.page.getByRole('menuitem', { name: 'Share' }).click();
    await bo.page.getByText('All of your organization may read it now').waitFor();
    await nadia.page.goto(address);
    // She is an administrator, and reads it; nothing of hers is his.
    await nadia.page.getByText('A conversation of bo@quayside.example').waitFor();
    await nadia.page.getByRole('log').getByText(ANSWER).waitFor();
    expect(await nadia.page.getByRole('textbox').count()).toBe(0);
    // The service may keep its stream for the owner.
    await nadia.forgetComplaints();
    await nadia.expectSound();
    await nadia.open('Conversations');
    await nadia.page.getByLabel('Whose').selectOption('Shared with me');
    await nadia.page.getByRole('main').getByText('bo@quayside.example').first().waitFor();
    await bo.page.goto(await started(demo.apiKey, 'Say something.'));
    await bo.page.getByText('There is no conversation of yours at this address.').waitFor();

    await nadia.open('Administration');
    const row = nadia.page.getByRole('listitem').filter({ hasText: 'bo@quayside.example' });
    await row.getByRole('button', { name: 'Keys' }).click();
    await row.getByRole('button', { name: 'Revoke' }).click();
    await nadia.page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await bo.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await bo.page.getByText('Your session has ended.').waitFor();
    expect(await bo.page.getByText(ANSWER).count()).toBe(0);
    await bo.leave();
  });

  it('removes a user when the address is typed, and hands the work over', async () => {
    const key = await keyOfNew('cy@quayside.example');
    await nadia.page.reload();
    const row = nadia.page.getByRole('listitem').filter({ hasText: 'bo@quayside.example' });
    await row.getByRole('button', { name: 'Keys' }).click();
    await row.getByText('No keys yet.').waitFor();
    await row.getByRole('button', { name: 'Remove' }).click();
    const dialog = nadia.page.getByRole('dialog', { name: 'Remove bo@quayside.example?' });
    const button = dialog.getByRole('button', { name: 'Remove' });
    await dialog.getByText('bo@quayside.example has 1 sandbox, 1 running.').waitFor();
    await dialog.getByText('paused and kept for a day').waitFor();
    await dialog.getByLabel('Hand over to').selectOption('cy@quayside.example');
    await dialog.getByText('All conversations and sandboxes go to cy@quayside.example.').waitFor();
    await dialog.getByLabel('Address').fill('bo@quayside');
    expect(await button.isDisabled()).toBe(true);
    await nadia.expectSound();
    await dialog.getByLabel('Address').fill('bo@quayside.example');
    await button.click();
    await row.waitFor({ state: 'detached' });
    await nadia.expectSound();

    const cy = await Visitor.come(browser, demo.url);
    await cy.signIn(key);
    await cy.page.goto(address);
    await cy.page.getByRole('log').getByText(ANSWER).waitFor();
    await cy.open('Settings');
    await cy.page.getByText('Provided by your operator.').waitFor();
    await cy.expectSound();
    await cy.leave();
  });
});
