import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { NotInstallable } from '../client.js';

const PROGRAMS = [process.env['CHROMIUM'] ?? '', '/usr/bin/chromium', '/usr/bin/chromium-browser'];
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // This machine only: names below localhost, which not every resolver knows, are this machine too.
  '--host-resolver-rules=MAP *.localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
];
const VIEWPORT = { width: 1360, height: 850 };
/** Busy machines take long to draw; what never comes is still told from what is late. */
const ACTION_TIMEOUT_MS = 60_000;

/** @throws NotInstallable where there is none */
export function chromiumProgram(): string {
  const program = PROGRAMS.find((candidate) => candidate !== '' && existsSync(candidate));
  if (program === undefined) {
    throw new NotInstallable(
      'there is no Chromium (apt-get install chromium; the variable CHROMIUM may name one)',
    );
  }
  return program;
}

/**
 * A page in a browser of its own, with a new profile.
 *
 * @param prepare a script that runs before any of the page's own
 */
export async function openPage(program: string, prepare: string): Promise<{ browser: Browser; page: Page }> {
  const browser = await chromium.launch({ executablePath: program, args: FLAGS });
  const context = await browser.newContext({ viewport: VIEWPORT, locale: 'en-US' });
  context.setDefaultTimeout(ACTION_TIMEOUT_MS);
  await context.addInitScript(prepare);
  return { browser, page: await context.newPage() };
}
