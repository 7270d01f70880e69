import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { openPage } from './browser.js';
import { PageWatch } from './page-watch.js';
import type { Steps } from './steps.js';

/** A web application in a browser, as a user sees it: each step is watched for what goes wrong on the way. */
export class WebApp {
  private constructor(
    readonly page: Page,
    readonly watch: PageWatch,
    private readonly browser: Browser,
    private readonly name: string,
    private readonly origin: string,
    private readonly steps: Steps,
    private readonly shots: string,
  ) {}

  static async open(options: {
    /** Of the client; begins the names of screenshots. */
    name: string;
    origin: string;
    steps: Steps;
    shots: string;
    program: string;
    /** A script that runs before any of the page's own. */
    prepare?: string;
    /** What the application does wrong by itself, with any server: addresses and messages. */
    own?: RegExp;
  }): Promise<WebApp> {
    const { name, origin, steps, shots } = options;
    const { browser, page } = await openPage(options.program, options.prepare ?? '');
    return new WebApp(page, new PageWatch(page, options.own ?? null), browser, name, origin, steps, shots);
  }

  /** A step that ends with a screenshot and a look at the toasts. */
  async step(step: string, act: (page: Page) => Promise<string>): Promise<boolean> {
    return this.steps.step(step, async () => {
      try {
        return await act(this.page);
      } finally {
        await this.watch.look(this.page);
        await this.shoot(step);
      }
    });
  }

  async goto(address: string): Promise<void> {
    await this.page.goto(new URL(address, this.origin).href);
  }

  async shoot(step: string): Promise<void> {
    const file = `${this.name}-${step.replaceAll(/\W+/g, '-').slice(0, 60)}.png`;
    await this.page.screenshot({ path: path.join(this.shots, file) });
  }

  /** The last steps: what the page was refused, and what it complained of. */
  async close(harmless: RegExp): Promise<void> {
    const nothing = (what: string, found: string[], meant: string) =>
      this.steps.step(what, async () => {
        if (found.length > 0) {
          throw new Error(found.join('; '));
        }
        return meant;
      });
    await nothing(
      'no request answered 404, 405 or 5xx',
      this.watch.refusals(),
      `${this.watch.asked.size} different requests`,
    );
    await nothing('no request refused otherwise', this.watch.declinations(), 'none with a status above 399');
    await nothing('no error toast', this.watch.errorToasts(harmless), 'none');
    await nothing('no console error', this.watch.consoleErrors(), 'none');
    await this.browser.close();
  }
}
