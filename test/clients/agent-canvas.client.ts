import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { webAppLink } from '../../src/web/web-app-link.js';
import { type Client, NotInstallable } from './client.js';
import { chromiumProgram } from './support/browser.js';
import { CanvasUser } from './support/canvas-user.js';
import { WebApp } from './support/web-app.js';

const run = promisify(execFile);
const INSTALLER = fileURLToPath(new URL('../../scripts/web.mjs', import.meta.url));

export const agentCanvas: Client = {
  name: 'agent-canvas',
  what: 'the web application @openhands/agent-canvas as npm run web serves it, in headless Chromium',
  install: async (cache) => {
    const program = chromiumProgram();
    const folder = await install(path.join(cache.folder, 'web-app'));
    return {
      environment: { WEB_APP_FOLDER: folder },
      run: async (world, steps) => {
        const { key, api } = await world.newcomer();
        const origin = world.url.replace('127.0.0.1', 'localhost');
        const app = await WebApp.open({ name: 'agent-canvas', origin, steps, shots: world.shots, program });
        try {
          await new CanvasUser(app, world, api).doEverything(webAppLink(origin, '127.0.0.1', key));
        } finally {
          await app.close(/saved|copied|success|created|deleted|removed|updated|now using|activated/i);
        }
      },
    };
  },
};

/** As npm run web does. */
async function install(folder: string): Promise<string> {
  try {
    const { stdout } = await run(process.execPath, [INSTALLER, '--install', folder]);
    return stdout.trim();
  } catch (error) {
    throw new NotInstallable(`npm does not have it here: ${String(error).trim().split('\n').at(-1)}`, {
      cause: error,
    });
  }
}
