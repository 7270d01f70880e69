import type { Page, Request } from 'playwright-core';

/** Of the service and of sandboxes; the page's fonts and its vendor are elsewhere, and are not asked. */
const LOCAL = /^(?:https?|wss?):\/\/(?:127\.0\.0\.1|localhost|[\w.-]+\.localhost)(?::\d+)?\//;
const TOAST = '[data-rht-toaster] [role="status"]';
/** Chromium drops requests when an interface of the machine comes or goes, as containers of others make them. */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
/** What pages say of scripts that were dropped so; they ask for them again. */
const DROPPED_SCRIPT =
  /dynamically imported module|Error loading route module|Importing a module script failed/;
/** The page says so itself when it is told no. */
const FAILED_RESOURCE = /^Failed to load resource/;

/** What the service says it does not offer, and the page does without. */
const NOT_OFFERED = ['501 GET /api/organizations/{id}/provider-connections'];

/** What goes wrong while a page is used. */
export class PageWatch {
  /** Everything that the page asked of this machine: `GET /api/…`, ids left out. */
  readonly asked = new Set<string>();
  /** Answers of 404, 405 and 5xx. */
  private readonly refused = new Map<string, number>();
  /** Any other answer above 399. */
  private readonly declined = new Map<string, number>();
  private readonly errors = new Set<string>();
  private readonly toasts = new Set<string>();
  private networkChanges = 0;

  /** @param own what the page does wrong by itself, with any server: addresses and messages */
  constructor(page: Page, own: RegExp | null) {
    const isOwn = (text: string): boolean => own?.test(text) === true;
    page.on('response', (response) => {
      const request = response.request();
      if (LOCAL.test(response.url())) {
        this.asked.add(nameOf(request));
        const status = response.status();
        const answer = `${status} ${nameOf(request)}`;
        if (status < 400 || NOT_OFFERED.includes(answer)) {
          return;
        }
        count(status === 404 || status === 405 || status > 499 ? this.refused : this.declined, answer);
      }
    });
    page.on('requestfailed', (request) => {
      const reason = request.failure()?.errorText ?? '';
      if (reason === NETWORK_CHANGED) {
        this.networkChanges += 1;
        return;
      }
      // A page that is left, or a list that is not wanted any more, ends its requests.
      if (LOCAL.test(request.url()) && reason !== 'net::ERR_ABORTED' && !isOwn(request.url())) {
        count(this.refused, `${reason} ${nameOf(request)}`);
      }
    });
    page.on('console', (message) => {
      const { url } = message.location();
      const isElsewhere = url !== '' && !LOCAL.test(url);
      const text = message.text();
      if (message.type() === 'error' && !isElsewhere && !FAILED_RESOURCE.test(text) && !isOwn(text)) {
        this.errors.add(text);
      }
    });
    page.on('pageerror', ({ message }) => {
      if (!isOwn(message)) {
        this.errors.add(`uncaught: ${message}`);
      }
    });
  }

  /** Keeps the texts of error toasts: called after each action, as toasts vanish. */
  async look(page: Page): Promise<void> {
    for (const text of await page.locator(TOAST).allInnerTexts()) {
      this.toasts.add(text);
    }
  }

  refusals(): string[] {
    return shown(this.refused);
  }

  declinations(): string[] {
    return shown(this.declined);
  }

  consoleErrors(): string[] {
    return [...this.errors].filter((text) => this.networkChanges === 0 || !DROPPED_SCRIPT.test(text));
  }

  /** @param harmless what the page says when something worked */
  errorToasts(harmless: RegExp): string[] {
    return [...this.toasts].filter((text) => !harmless.test(text));
  }
}

/** Method and path, without ids, queries and ports. */
function nameOf(request: Request): string {
  const { pathname } = new URL(request.url());
  const path = pathname
    .replaceAll(/[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}')
    .replaceAll(/(?<=sandboxes\/)\w{20,}/g, '{id}');
  return `${request.method()} ${path}`;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function shown(counts: Map<string, number>): string[] {
  return [...counts].map(([name, times]) => (times === 1 ? name : `${name} (${times} times)`));
}
