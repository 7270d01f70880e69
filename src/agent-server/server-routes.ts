import { Router } from 'express';
import type { ServerInfo } from '../agent-protocol/server-info.js';
import type { Activity } from './activity.js';

/** Of the protocol that we speak; clients compare it. */
const PROTOCOL_VERSION = '1.11.4';
const OK = { status: 'ok' };
const TOOLS = ['terminal', 'file_editor', 'task_tracker', 'finish', 'think'];

/** What needs no key: whether the server is there, which start of it this is, and since when it has had nothing to do. */
export function serverRoutes(activity: Activity, instanceId: string): Router {
  const router = Router();
  router.get(['/alive', '/health', '/ready'], (_request, response) => {
    response.json(OK);
  });
  router.get(['/', '/server_info'], (_request, response) => {
    const info: ServerInfo = {
      uptime: activity.uptimeSeconds(),
      idle_time: activity.idleSeconds(),
      title: 'Slipway Agent Server',
      version: PROTOCOL_VERSION,
      docs: '/docs',
      redoc: '/redoc',
      instance_id: instanceId,
    };
    response.json(info);
  });
  return router;
}

/** Small things that clients ask for: the tools, and desktops that we do not have. */
export function miscellaneousRoutes(): Router {
  const router = Router();
  router.get('/tools', (_request, response) => {
    response.json(TOOLS);
  });
  router.get(['/vscode/url', '/desktop/url'], (_request, response) => {
    response.json({ url: null });
  });
  router.get('/vscode/status', (_request, response) => {
    response.json({ running: false, enabled: false });
  });
  return router;
}
