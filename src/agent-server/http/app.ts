import express, { type Express, Router } from 'express';
import type { ServerInfo } from '../../agent-protocol/server.js';
import type { Activity } from '../activity.js';
import type { BashCommands } from '../bash/bash-commands.js';
import { bashRoutes } from '../bash/bash-routes.js';
import { conversationRoutes } from '../conversations/conversation-routes.js';
import type { Conversations } from '../conversations/conversations.js';
import { eventRoutes } from '../conversations/event-routes.js';
import { type AllowedPaths, fileRoutes } from '../files/file-routes.js';
import { gitRoutes, type GitWorkspace } from '../git/git-workspace.js';
import type { RepositoryPreparation } from '../git/repository-preparation.js';
import type { SocketLimits } from '../sockets/socket-request.js';
import { Sockets } from '../sockets/sockets.js';
import { cors, type HttpSide, type SessionKeys } from './front-door.js';
import { errorHandler } from './http-errors.js';

/** Of the protocol that we speak; clients compare it. */
const PROTOCOL_VERSION = '1.11.4';
const OK = { status: 'ok' };
const TOOLS = ['terminal', 'file_editor', 'task_tracker', 'finish', 'think'];

/** What needs no key: whether the server is there, which start of it this is, and since when it has had nothing to do. */
function serverRoutes(activity: Activity, instanceId: string): Router {
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
function miscellaneousRoutes(): Router {
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

const MAX_JSON = '16mb';

interface AppParts {
  conversations: Conversations;
  commands: BashCommands;
  paths: AllowedPaths;
  git: GitWorkspace;
  preparation: RepositoryPreparation;
  keys: SessionKeys;
  activity: Activity;
  /** Of this start of the server. */
  instanceId: string;
  corsOrigins: string[];
  maxUploadBytes: number;
}

/** The routes of the agent server. */
function createApp(parts: AppParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(cors(parts.corsOrigins));
  app.use(serverRoutes(parts.activity, parts.instanceId));
  app.use('/api', parts.keys.guard, (request, _response, next) => {
    // Clients look at the state every second: that is no use of the server.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      parts.activity.touch();
    }
    next();
  });
  // Not strict: ids are asked for with an array alone.
  app.use('/api', express.json({ limit: MAX_JSON, strict: false }));
  app.use('/api/conversations/:id/events', eventRoutes(parts.conversations));
  app.use('/api/conversations', conversationRoutes(parts.conversations));
  app.use('/api/bash', bashRoutes(parts.commands));
  app.use('/api/file', fileRoutes(parts.paths, parts.maxUploadBytes));
  app.use('/api/git', gitRoutes(parts));
  app.use('/api', miscellaneousRoutes());
  app.use((_request, response) => {
    response.status(404).json({ detail: 'Not Found' });
  });
  app.use(errorHandler);
  return app;
}

export interface HttpSideParts extends AppParts {
  sockets: SocketLimits;
}

/** Routes and sockets. Loading this module loads Express and zod: import it once the server listens. */
export function createHttpSide(parts: HttpSideParts): HttpSide {
  const { conversations, commands, keys, activity } = parts;
  const sockets = new Sockets({
    conversations,
    commands,
    keys,
    limits: parts.sockets,
    touch: () => activity.touch(),
  });
  sockets.watch();
  const app = createApp(parts);
  return {
    handle: (request, response) => app(request, response),
    upgrade: (request, stream, head) => sockets.upgrade(request, stream, head),
    close: () => sockets.close(),
  };
}
