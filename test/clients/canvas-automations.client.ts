import type { Client } from './client.js';
import { canvasApp } from './support/canvas-app.js';
import { CanvasAutomations } from './support/canvas-automations.js';

export const canvasAutomations: Client = {
  name: 'canvas-automations',
  what: 'the pages of automations of the web application @openhands/agent-canvas, in headless Chromium',
  install: (cache) =>
    canvasApp('canvas-automations', cache, async (app, world, api) => {
      await world.settle(api);
      await new CanvasAutomations(app, api).fromImportToDeletion();
    }),
};
