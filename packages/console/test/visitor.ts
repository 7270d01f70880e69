import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { until } from '../../../test/support/until.js';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // This machine only: whatever the page asked of another would fail, and show in the log.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
];
/** For one step: a start of a sandbox takes long where four run at once on a machine that has other things to do. */
const PATIENCE_MS = 120_000;
const AXE = readFileSync(createRequire(__filename).resolve('axe-core/axe.min.js'), 'utf8');
const SHOTS = path.join(__dirname, 'screenshots');
const DESK = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
/**
 * The last one is how the pages are used, in which axe looks at every step. In the others it looks where there is a kind of part
 * that it has not seen so: it takes a second of a processor each time.
 */
const LOOKS = [
  { colorScheme: 'light', viewport: PHONE, seen: new Set<string>() },
  { colorScheme: 'dark', viewport: DESK, seen: new Set<string>() },
  { colorScheme: 'light', viewport: DESK, seen: null },
] as const;
/** Tables and lines of code scroll by themselves; the page and its navigation must not. */
const SCROLLING_SIDEWAYS =
  "[...document.querySelectorAll('html, nav')].filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.tagName)";
/** What styles go by: each kind of part that is visible, with what it is in. */
const VISIBLE_KINDS = `(() => {
  const names = ['class', 'role', 'type', 'open', 'disabled', ...['current', 'selected', 'invalid', 'expanded', 'pressed', 'checked'].map((state) => 'aria-' + state)];
  const kind = (part) => [part.localName, ...names.map((name) => part.getAttribute(name) ?? '')].join(' ');
  const visible = [...document.querySelectorAll('body *')].filter((part) => part.checkVisibility());
  return [...new Set(visible.map((part) => kind(part.parentElement) + ' > ' + kind(part)))];
})()`;
/** What a page prints for an answer that was refused; the answer itself is counted. */
const REFUSED = /Failed to load resource: the server responded with a status of/;

export async function startBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: FLAGS,
    timeout: PATIENCE_MS,
  });
}

/** A user at a browser of their own, and what went wrong there. */
export class Visitor {
  readonly page: Page;
  private readonly context: BrowserContext;
  private readonly complaints: string[] = [];
  private readonly refusals: string[] = [];
  private readonly unanswered = new Set<Request>();
  private readonly sentHosts = new Set<string>();

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type()) && !REFUSED.test(message.text())) {
        this.complaints.push(message.text());
      }
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('request', (request) => {
      this.sentHosts.add(new URL(request.url()).origin);
      this.unanswered.add(request);
    });
    page.on('requestfailed', (request) => this.unanswered.delete(request));
    page.on('response', (response) => {
      this.unanswered.delete(response.request());
      if (response.status() >= 400) {
        this.refusals.push(`${response.status()} ${response.request().method()} ${response.url()}`);
      }
    });
  }

  static async come(browser: Browser, baseURL: string): Promise<Visitor> {
    const context = await browser.newContext({
      baseURL,
      viewport: DESK,
      locale: 'en-US',
    });
    context.setDefaultTimeout(PATIENCE_MS);
    return new Visitor(context, await context.newPage());
  }

  async signIn(key: string): Promise<void> {
    await this.page.goto('/');
    await this.page.getByLabel('API key').fill(key);
    await this.page.getByRole('button', { name: 'Sign in' }).click();
    await this.page.getByRole('heading', { name: 'Work' }).waitFor();
  }

  /** Opens a page by its link. */
  async open(name: string): Promise<void> {
    await this.page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click();
    await this.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  /** Looks at the browser's log and the refusals since the last time, at other origins, and with axe, in light and dark, wide and narrow. */
  async expectSound(refusals = 0): Promise<void> {
    for (const { colorScheme, viewport, seen } of LOOKS) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.setViewportSize(viewport);
      expect({ viewport, sideways: await this.page.evaluate(SCROLLING_SIDEWAYS) }).toEqual({
        viewport,
        sideways: [],
      });
      const kinds = await this.page.evaluate<string[]>(VISIBLE_KINDS);
      if (seen === null || kinds.some((kind) => !seen.has(kind))) {
        expect((await this.violations()).map((one) => ({ colorScheme, viewport, ...one }))).toEqual([]);
        kinds.forEach((kind) => seen?.add(kind));
      }
    }
    expect(await this.page.locator('h1:visible').count()).toBe(1);
    expect(this.refusals.splice(0)).toHaveLength(refusals);
    expect(this.complaints.splice(0)).toEqual([]);
    expect([...this.sentHosts]).toEqual([new URL(this.page.url()).origin]);
  }

  private async violations(): Promise<{ id: string; where: string[] }[]> {
    if (await this.page.evaluate<boolean>("typeof axe === 'undefined'")) {
      await this.page.evaluate(AXE);
    }
    const { violations } = await this.page.evaluate<AxeResults>("axe.run({ resultTypes: ['violations'] })");
    return violations.map(({ id, nodes }) => ({ id, where: nodes.map(({ html }) => html) }));
  }

  /** Forgets the browser's log, and what is refused of the requests under way, where the test has taken away what they ask for. */
  async forgetComplaints(): Promise<void> {
    const underWay = [...this.unanswered];
    await until(() => underWay.every((request) => !this.unanswered.has(request)));
    // What the browser has printed about them comes before this answer.
    await this.page.evaluate('0');
    this.complaints.splice(0);
    this.refusals.splice(0);
  }

  /** Forgets whose pages were visited, as that of an identity provider. */
  forgetHosts(): void {
    this.sentHosts.clear();
  }

  /** The colour behind everything. */
  async ground(colorScheme: 'light' | 'dark'): Promise<string> {
    await this.page.emulateMedia({ colorScheme });
    return await this.page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  }

  /** Keeps what the page looks like, for people: README shows some of these. */
  async shoot(name: string): Promise<void> {
    await this.page.emulateMedia({ colorScheme: 'light' });
    await this.page.screenshot({ path: path.join(SHOTS, `${name}.png`) });
  }

  /** All that pages of this origin could read later. */
  async kept(): Promise<string> {
    return await this.page.evaluate<string>(
      'JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
    );
  }

  async hasSession(): Promise<boolean> {
    return (await this.context.cookies()).some(({ name }) => name === 'slipway_session');
  }

  /** What people are asked for by their browser. */
  async allow(...permissions: string[]): Promise<void> {
    await this.context.grantPermissions(permissions);
  }

  /** One more of the same browser, in front of the page. */
  async openTab(): Promise<Page> {
    return await this.context.newPage();
  }

  async loseSession(): Promise<void> {
    await this.context.clearCookies();
  }

  async leave(): Promise<void> {
    await this.context.close();
  }
}
