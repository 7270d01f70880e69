import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pLimit from 'p-limit';
import type { Browser, Page } from 'playwright-core';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { tellAutomation } from '../../../demo/automations-story.js';
import { type Demo, startDemo } from '../../../demo/start-demo.js';
import { tellModel, tellTokens } from '../../../demo/story.js';
import { Storyteller } from '../../../demo/storyteller.js';
import type { ApiClient } from '../../../test/system/journeys/support/api-client.js';
import { until } from '../../../test/support/until.js';
import { apiOf } from './api-of.js';
import { startBrowser, Visitor } from './visitor.js';

const TASKS = 15;
/** Tabs at a time. */
const TABS = 4;
/** One person does not open fifteen tasks in a minute. */
const QUICK_HANDS = { RATE_LIMIT_PER_MINUTE: '0' };
const DONE = /The checks pass, and the change is|AGENTS\.md is written/;
const ENDED = new RegExp(`${DONE.source}|could not be opened|push failed`);

interface Task {
  task_type: string;
  repo: string;
  title: string;
}

describe('the world of the demo', () => {
  let demo: Demo;
  let browser: Browser;
  let nadia: Visitor;
  let tasks: Task[];

  const api = (): ApiClient => apiOf(demo, demo.nadia.apiKey);
  const conversations = async (): Promise<unknown[]> =>
    jsonList(await api().get('/api/v1/app-conversations/search?limit=100'), 'items');
  const followOf = (conversation: unknown): string => jsonText(conversation, 'follow', 'state') ?? '';
  const changes = () => Object.values(demo.worlds).flatMap(({ changeRequests }) => changeRequests);

  /** Goes from the page Work to the pull request, and uses every button on the way. */
  async function workOn(page: Page, { title, task_type: kind }: Task): Promise<void> {
    await page.goto('/console/');
    await page.getByLabel('Follow its pull request').check();
    await page
      .getByRole('listitem')
      .filter({ hasText: title })
      .getByRole('button', { name: 'Start', exact: true })
      .click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
    expect(await page.getByRole('log').getByText(ENDED).first().textContent()).toMatch(DONE);
    if (kind !== 'OPEN_ISSUE') {
      await page.getByRole('button', { name: 'Open pull request' }).click();
    }
    await page
      .getByRole('region', { name: 'Facts' })
      .getByRole('link', { name: /^#\d+ / })
      .waitFor();
    await page.close();
  }

  beforeAll(async () => {
    [demo, browser] = await Promise.all([startDemo({ environment: QUICK_HANDS }), startBrowser()]);
    const teller = new Storyteller(demo.url, demo.nadia.apiKey, () => undefined);
    await tellTokens(demo, teller);
    await tellModel(demo, teller);
    await tellAutomation(demo, teller);
    nadia = await Visitor.come(browser, demo.url);
  });

  afterAll(async () => {
    await browser.close();
    await demo.close();
  });

  it('lets its person in by a link, and she is no administrator', async () => {
    const link = new URL(await demo.nadia.signInLink());
    await nadia.page.goto(`/console/${link.hash}`);
    await nadia.page.getByRole('heading', { level: 1, name: 'Work' }).waitFor();

    await nadia.page.getByText('nadia@quayside.example').first().waitFor();
    expect(await nadia.page.getByRole('link', { name: 'Administration' }).count()).toBe(0);
  });

  // Before the automation runs: a pull request of its own is a task too while its check fails.
  it('has a button for every task', async () => {
    tasks = (await api().get('/api/user/suggested-tasks')) as Task[];
    await nadia.open('Work');
    await nadia.page.getByRole('button', { name: 'Start', exact: true }).first().waitFor();
    expect(await nadia.page.getByRole('button', { name: 'Start', exact: true }).count()).toBe(TASKS);
    expect(tasks).toHaveLength(TASKS);
  });

  it('runs its automation by a button', async () => {
    await nadia.open('Automations');
    await nadia.page.getByRole('link', { name: 'Try all labels every night' }).click();
    await nadia.page.getByRole('button', { name: 'Run now' }).click();
    const run = nadia.page.getByRole('listitem').filter({ hasText: 'By hand' });
    await run.getByRole('link', { name: 'Conversation 1' }).waitFor();
    expect(await run.count()).toBe(1);
    await run.getByRole('link', { name: 'Conversation 1' }).click();
    const log = nadia.page.getByRole('log');
    await log.getByText('The pull request is open.').first().waitFor();

    expect(await log.getByRole('alert').allInnerTexts()).toEqual([]);
  });

  it('leads from each task to a pull request', async () => {
    const tabs = pLimit(TABS);
    const work = tabs.map(tasks, async (task) => await workOn(await nadia.page.context().newPage(), task));

    await expect(work).resolves.toHaveLength(TASKS);
  }, 600_000);

  it('follows the pull requests on all hosts, until that of the automation is green', async () => {
    let all: unknown[] = [];
    // The agent may still answer the review of one when others are reached.
    await until(async () => {
      all = await conversations();
      const own = all.find((conversation) => jsonText(conversation, 'trigger') === 'automation');
      return followOf(own) === 'reached' && !all.some((conversation) => followOf(conversation) === 'working');
    });

    expect(all).toHaveLength(TASKS + 1);
    expect(all.map(followOf).filter((state) => !['watching', 'reached'].includes(state))).toEqual([]);
    await nadia.open('Automations');
    await nadia.page.getByRole('link', { name: 'Try all labels every night' }).click();
    const run = nadia.page.getByRole('listitem').filter({ hasText: 'By hand' });
    await run.getByText('finished').waitFor();
    // This model has no price.
    expect(await run.innerText()).not.toContain('$');
    await nadia.open('Conversations');
    await nadia.expectSound();
  });

  it('has only green pull requests then, without a conflict or a comment that waits', async () => {
    await until(() => changes().every(({ checks }) => checks === 'passing'));
    await Promise.all(Object.values(demo.hosts).map((host) => host.idle()));

    const waiting = changes().filter(
      ({ conflicts, unresolved }) => conflicts === 'yes' || (unresolved ?? 'none') !== 'none',
    );
    expect(waiting).toEqual([]);
    // One comes from a fork, which has what was pushed.
    const [across] = changes().filter(({ fork }) => fork !== undefined);
    const { repositories } = demo.hosts.github;
    expect(across?.followed?.head).toBe(await repositories.tip('nadia/label-printer', 'feat/half-sheets'));
    expect((await repositories.tips('quayside/label-printer')).has('feat/half-sheets')).toBe(false);
    const worked = new Map(changes().map(({ repository, title }) => [`${repository}: ${title}`, true]));
    expect(tasks.filter(({ repo, title }) => !worked.has(`${repo}: ${title}`))).toEqual([]);
  });

  it('does a task once more', async () => {
    const suggested = tasks.find(({ task_type: kind }) => kind === 'OPEN_ISSUE');
    await api().start({ suggested_task: suggested });
    const again: unknown[] = [];
    await until(async () => {
      const all = await conversations();
      again.splice(0, Infinity, ...all.filter((each) => jsonText(each, 'title') === suggested?.title));
      return again.length === 2 && again.every((each) => jsonText(each, 'execution_status') === 'finished');
    });

    expect(again.map((each) => jsonList(each, 'pull_requests')?.length)).toEqual([1, 1]);
  });
});
