import type { Client } from './client.js';
import { canvasApp } from './support/canvas-app.js';
import { CanvasUser } from './support/canvas-user.js';

export const agentCanvas: Client = {
  name: 'agent-canvas',
  what: 'the web application @openhands/agent-canvas as npm run web serves it, in headless Chromium',
  install: (cache) =>
    canvasApp('agent-canvas', cache, (app, world, api) => new CanvasUser(app, world, api).doEverything('/')),
};
