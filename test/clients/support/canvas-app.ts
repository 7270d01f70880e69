import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { type InstalledClient, NotInstallable } from '../client.js';
import { chromiumProgram } from './browser.js';
import type { ClientCache } from './client-cache.js';
import type { ClientsWorld } from './clients-world.js';
import { WebApp } from './web-app.js';

const run = promisify(execFile);
const INSTALLER = fileURLToPath(new URL('../../../scripts/web.mjs', import.meta.url));

/** After a stop 1.20.0 asks for the costs of the paused conversation, which has no address: with any server. */
const HARMLESS =
  /saved|copied|success|created|deleted|removed|updated|imported|dispatched|now using|activated|^No backend is configured\.$/i;

/**
 * @openhands/agent-canvas as npm run web serves it, with the key of a newcomer.
 *
 * @throws NotInstallable without npm or Chromium
 */
export async function canvasApp(
  name: string,
  cache: ClientCache,
  use: (app: WebApp, world: ClientsWorld, api: ApiClient) => Promise<void>,
): Promise<InstalledClient> {
  const program = chromiumProgram();
  const folder = await install(path.join(cache.folder, 'web-app'));
  return {
    environment: { WEB_APP_FOLDER: folder },
    run: async (world, steps) => {
      const { key, api } = await world.newcomer();
      const origin = world.url.replace('127.0.0.1', 'localhost');
      const prepare = withKey(origin, key);
      const app = await WebApp.open({ name, origin, steps, shots: world.shots, program, prepare });
      try {
        await use(app, world, api);
      } finally {
        await app.close(HARMLESS);
      }
    },
  };
}

/** Stores the key of a newcomer as the application does once it was typed in. The link of a start is for the first user. */
function withKey(origin: string, key: string): string {
  const backend = {
    id: 'slipway',
    name: 'Slipway',
    kind: 'cloud',
    authMode: 'api-key',
    host: origin,
    apiKey: key,
  };
  const active = { backendId: backend.id, orgId: null };
  const items = { 'openhands-backends': [backend], 'openhands-active-backend': active };
  return `if (location.origin === ${JSON.stringify(origin)} && localStorage.length === 0) {
    Object.entries(${JSON.stringify(items)}).forEach(([name, value]) => localStorage.setItem(name, JSON.stringify(value)));
  }`;
}

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
