import express, { type Express, type RequestHandler, Router } from 'express';
import type { ServerInfo } from '@slipway/agent-protocol/server.js';
import { cutUnreadBodies } from '@slipway/common/requests/json-body.js';
import type { ActivityTracker } from '../observability.js';
import type { AgentServerOptions } from '../command-line.js';
import type { BashCommands } from '../bash/bash-commands.js';
import { bashRoutes } from '../bash/bash-routes.js';
import { conversationRoutes } from '../conversations/conversation-routes.js';
import type { Conversations } from '../conversations/conversations.js';
import { fileRoutes } from '../files/file-routes.js';
import type { WorkspaceFiles } from '../files/workspace-files.js';
import { gitRoutes, type PushBranch } from '../git/git-routes.js';
import type { GitWorkspace } from '../git/git-workspace.js';
import type { RepositoryPreparation } from '../git/repository-preparation.js';
import type { SkillReader } from '../skills/skill-reader.js';
import { hookRoutes, skillRoutes } from '../skills/skill-routes.js';
import { type ClientSettings, LlmProfiles } from '../client-settings/client-settings.js';
import { profileRoutes, settingsRoutes } from '../client-settings/settings-routes.js';
import type { ToolView } from '../tool-view.js';
import { SocketServer, type SocketServerOptions } from '../sockets/socket-server.js';
import { errorHandler } from './error-handler.js';
import type { HttpApp } from './lazy-app.js';
import { mcpTestRoutes } from './mcp-test-routes.js';
import { portRoutes } from './port-routes.js';
import { jsonBodies, type BaseFolder, nowhere, requireRuntime, runtimeFolder } from './request-parsing.js';
import type { SessionKeys } from './session-keys.js';

/** Version of the protocol that we implement; clients compare it. */
const PROTOCOL_VERSION = '1.58.2';
/** The capabilities of the published server that this one has too. */
const CAPABILITIES = ['conversation_runtime_routes_v1', 'idempotent_conversation_create_v1'];
const TOOLS = ['terminal', 'file_editor', 'task_tracker', 'finish', 'think'];
/** How long a client may keep sending a body that was answered unread. */
const UNREAD_BODY_MS = 20_000;
const LOCAL_ORIGIN = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

interface HttpAppOptions extends AgentServerOptions {
  conversations: Conversations;
  commands: BashCommands;
  files: WorkspaceFiles;
  git: GitWorkspace;
  preparation: RepositoryPreparation;
  push: PushBranch;
  skills: SkillReader;
  settings: ClientSettings;
  keys: SessionKeys;
  activity: ActivityTracker;
  instanceId: string;
  view: ToolView;
  withholdReports: SocketServerOptions['withholdReports'];
}

/** All routes and sockets. This module loads Express, zod and ws: import it lazily, once the server listens. */
export function createHttpApp(options: HttpAppOptions): HttpApp {
  const sockets = new SocketServer({ ...options, touch: () => options.activity.touch() });
  const app = createExpressApp(options);
  return {
    handle: (request, response) => app(request, response),
    upgrade: (request, stream, head) => sockets.upgrade(request, stream, head),
    close: () => sockets.close(),
  };
}

function createExpressApp(options: HttpAppOptions): Express {
  const { activity } = options;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(cutUnreadBodies(UNREAD_BODY_MS));
  app.use(cors(options.corsOrigins));
  app.use(serverRoutes(activity, options.instanceId));
  app.use('/api', options.keys.guard, (request, _response, next) => {
    // Clients poll the state every second: reading does not count as activity.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      activity.touch();
    }
    next();
  });
  // After the check of the key, so that no body without a key is received or unpacked.
  app.use('/api', jsonBodies());
  const profiles = new LlmProfiles();
  app.use('/api/conversations', conversationRoutes({ ...options, profiles }));
  app.use('/api', workspaceRoutes(options, nowhere));
  const ofConversation = runtimeFolder(options.conversations);
  app.use(
    '/api/conversations/:runtime',
    requireRuntime(ofConversation),
    workspaceRoutes(options, ofConversation),
  );
  app.use('/api/settings', settingsRoutes(options.settings));
  app.use('/api/profiles', profileRoutes(profiles));
  app.use('/api/mcp', mcpTestRoutes(options));
  app.use('/api/skills', skillRoutes(options.skills));
  app.use('/api/hooks', hookRoutes(options.files));
  app.use('/api/ports', portRoutes(options.view));
  app.get('/api/tools', answer(TOOLS));
  app.get('/api/desktop/url', answer({ url: null }));
  app.use((_request, response) => {
    response.status(404).json({ detail: 'Not Found' });
  });
  app.use(errorHandler);
  return app;
}

/** Commands, files and git: for the whole server, and below the path of each conversation. */
function workspaceRoutes(options: HttpAppOptions, baseFolder: BaseFolder): Router {
  const router = Router({ mergeParams: true });
  router.use('/bash', bashRoutes(options.commands, baseFolder));
  router.use('/file', fileRoutes({ ...options, baseFolder }));
  router.use('/git', gitRoutes({ ...options, baseFolder }));
  router.get('/vscode/url', answer({ url: null }));
  router.get('/vscode/status', answer({ running: false, enabled: false }));
  return router;
}

function serverRoutes(activity: ActivityTracker, instanceId: string): Router {
  const router = Router();
  // Before the server has its key, `LazyApp` responds.
  router.get('/alive', answer({ status: 'ok', assigned: true }));
  router.get(['/health', '/ready'], answer({ status: 'ok' }));
  router.get(['/', '/server_info'], (_request, response) => {
    const info: ServerInfo = {
      uptime: activity.uptimeSeconds(),
      idle_time: activity.idleSeconds(),
      title: 'Slipway Agent Server',
      version: PROTOCOL_VERSION,
      capabilities: CAPABILITIES,
      usable_tools: TOOLS,
      docs: '/docs',
      redoc: '/redoc',
      instance_id: instanceId,
    };
    response.json(info);
  });
  return router;
}

function answer(body: object): RequestHandler {
  return (_request, response) => {
    response.json(body);
  };
}

/** Lets pages of this machine and of the given origins call us (`*`: of any origin). */
function cors(origins: readonly string[]): RequestHandler {
  const allowed = new Set(origins.map((origin) => origin.replace(/\/$/, '')));
  return (request, response, next) => {
    const origin = request.get('origin');
    response.vary('Origin');
    if (origin !== undefined && (LOCAL_ORIGIN.test(origin) || allowed.has(origin) || allowed.has('*'))) {
      response.set('Access-Control-Allow-Origin', origin);
      response.set('Access-Control-Allow-Credentials', 'true');
      if (request.method === 'OPTIONS' && request.get('access-control-request-method')) {
        response.set('Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS');
        response.set('Access-Control-Allow-Headers', request.get('access-control-request-headers') ?? '*');
        response.set('Access-Control-Max-Age', '600');
        response.status(204).end();
        return;
      }
    }
    next();
  };
}
