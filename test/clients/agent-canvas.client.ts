import path from 'node:path';
import type { Client } from './client.js';
import { chromiumProgram } from './support/browser.js';
import { CanvasUser } from './support/canvas-user.js';
import { Site } from './support/site.js';
import { WebApp } from './support/web-app.js';

const VERSION = '1.20.0';

export const agentCanvas: Client = {
  name: 'agent-canvas',
  what: `the web application @openhands/agent-canvas ${VERSION} as npm has it, in headless Chromium`,
  install: async (cache) => {
    const program = chromiumProgram();
    const folder = await cache.npmPackage(`@openhands/agent-canvas@${VERSION}`);
    const site = await Site.open(path.join(folder, 'build'));
    return {
      environment: { CORS_ORIGINS: site.origin },
      run: async (world, steps) => {
        const { key, api } = await world.newcomer();
        await world.journey.giveToken(api);
        site.connect(world.url, null);
        const backend = {
          id: 'slipway',
          name: 'Slipway',
          host: site.origin,
          apiKey: key,
          kind: 'cloud',
          authMode: 'api-key',
        };
        const app = await WebApp.open({
          name: 'agent-canvas',
          origin: site.origin,
          steps,
          shots: world.shots,
          program,
          prepare: `
            localStorage.setItem('openhands-backends', ${JSON.stringify(JSON.stringify([backend]))});
            localStorage.setItem('openhands-active-backend', '{"backendId":"slipway","orgId":null}');`,
        });
        try {
          const user = new CanvasUser(app, world, api);
          await user.arrive();
          await user.lookAtEveryPage();
          await user.converse();
        } finally {
          await app.close(/saved|copied|success/i);
          await site.close();
        }
      },
    };
  },
};
