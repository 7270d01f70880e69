import express, { type Express } from 'express';
import type { Activity } from './activity.js';
import type { BashCommands } from './bash/bash-commands.js';
import { bashRoutes } from './bash/bash-routes.js';
import { conversationRoutes } from './conversations/conversation-routes.js';
import type { Conversations } from './conversations/conversations.js';
import { eventRoutes } from './conversations/event-routes.js';
import type { AllowedPaths } from './files/allowed-paths.js';
import { fileRoutes } from './files/file-routes.js';
import { gitRoutes } from './git/git-routes.js';
import type { GitWorkspace } from './git/git-workspace.js';
import type { RepositoryPreparation } from './git/repository-preparation.js';
import { cors } from './http/cors.js';
import { errorHandler } from './http/error-handler.js';
import type { SessionKeys } from './http/session-keys.js';
import { miscellaneousRoutes, serverRoutes } from './server-routes.js';

const MAX_JSON = '16mb';

export interface AppParts {
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
export function createApp(parts: AppParts): Express {
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
