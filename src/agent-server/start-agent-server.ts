import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { Activity } from './activity.js';
import type { AgentServerOptions } from './agent-server-options.js';
import { BashCommands } from './bash/bash-commands.js';
import { Conversations } from './conversations/conversations.js';
import { EventLog, isBashEvent } from './event-log.js';
import { AllowedPaths } from './files/file-routes.js';
import { GitWorkspace } from './git/git-workspace.js';
import { RepositoryPreparation } from './git/repository-preparation.js';
import { FrontDoor, SessionKeys } from './http/front-door.js';
import { log } from './log.js';
import { WebhookSender } from './webhooks/webhook-sender.js';

interface WatchOptions {
  conversations: Conversations;
  webhooks: WebhookSender | null;
  activity: Activity;
}

/** Tells webhooks what happens to conversations, and notes that something does. */
function watchConversations({ conversations, webhooks, activity }: WatchOptions): void {
  conversations.watch({
    added: (conversation) => {
      webhooks?.conversation(conversation.info());
      conversation.log.onAppend((event) => {
        activity.touch();
        webhooks?.event(conversation.id, event);
      });
    },
    changed: (conversation) => {
      webhooks?.conversation(conversation.info());
    },
    removed: (info) => {
      webhooks?.conversation(info);
    },
  });
}

/** Longer than clients keep theirs: the side that sends decides when a connection ends. */
const KEEP_ALIVE_MS = 65_000;
const UPLOAD_MS = 3_600_000;
const WEBHOOK_STOP_MS = 2_000;

export interface RunningAgentServer {
  port: number;
  /** Ends runs and commands; everything is on the disk afterwards. */
  stop(): Promise<void>;
}

/** Loads what an earlier server left, then listens. */
export async function startAgentServer(options: AgentServerOptions): Promise<RunningAgentServer> {
  const { workspace, environment, sessionKeys } = options;
  await mkdir(workspace, { recursive: true });
  const conversations = new Conversations({
    folder: options.conversationsPath,
    workspace,
    createEngine: options.createEngine,
    baseEnvironment: environment,
    serverSecrets: sessionKeys,
    maxConcurrentRuns: options.maxConcurrentRuns,
  });
  const commands = new BashCommands({
    log: await EventLog.open(path.join(options.bashEventsPath, 'events.jsonl'), isBashEvent),
    workspace,
    environment,
    wrapper: options.toolWrapper,
    masker: () => conversations.masker(),
  });
  const paths = new AllowedPaths([workspace, ...options.fileRoots]);
  const place = { environment, wrapper: options.toolWrapper };
  const preparation = new RepositoryPreparation({ ...place, workspace, paths });
  const activity = new Activity(
    () => commands.isRunning || preparation.isRunning || isAnyRunning(conversations),
  );
  const keys = new SessionKeys(sessionKeys);
  if (keys.isOpen) {
    log('warn', 'no session key is set: whoever reaches this server may use it');
  }
  const webhooks =
    options.webhook && new WebhookSender({ ...options.webhook, sessionKey: sessionKeys[0] ?? null });
  watchConversations({ conversations, webhooks, activity });
  await Promise.all([conversations.load(), commands.closeInterrupted()]);
  const { corsOrigins, maxUploadBytes, sockets } = options;
  const git = new GitWorkspace(environment, options.toolWrapper);
  const parts = {
    conversations,
    commands,
    paths,
    git,
    preparation,
    keys,
    activity,
    instanceId: randomUUID(),
  };
  const frontDoor = new FrontDoor(async () => {
    const { createHttpSide } = await import('./http/app.js');
    return createHttpSide({ ...parts, corsOrigins, maxUploadBytes, sockets });
  });
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: UPLOAD_MS },
    frontDoor.handle,
  );
  server.on('upgrade', frontDoor.upgrade);
  const port = await listen(server, options);
  return {
    port,
    stop: async () => {
      server.close();
      await Promise.all([conversations.stop(options.stopGraceMs), commands.stop(), preparation.stop()]);
      await commands.log.close();
      await frontDoor.close();
      await webhooks?.stop(WEBHOOK_STOP_MS);
      server.closeAllConnections();
    },
  };
}

function isAnyRunning(conversations: Conversations): boolean {
  return conversations.all().some(({ isRunning }) => isRunning);
}

async function listen(server: Server, { host, port, portFile }: AgentServerOptions): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') {
    throw new Error('the server listens on no port');
  }
  if (portFile !== null) {
    await writeFile(`${portFile}.new`, `${address.port}\n`);
    await rename(`${portFile}.new`, portFile);
  }
  return address.port;
}
