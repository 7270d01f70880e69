import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { AllowedHosts } from '@slipway/common/requests/allowed-hosts.js';
import { ActivityTracker, handleTraced, log } from './observability.js';
import type { AgentServerOptions, ListenOptions } from './command-line.js';
import { BashCommands } from './bash/bash-commands.js';
import { ClientSettings } from './client-settings/client-settings.js';
import { watchReserve } from './conversations/conversation-files.js';
import { Conversations } from './conversations/conversations.js';
import { EventLog } from './event-log.js';
import { WorkspaceFiles } from './files/workspace-files.js';
import { pushBranch } from './git/remote-access.js';
import { GitWorkspace } from './git/git-workspace.js';
import { privateFolder } from './git/private-repository.js';
import { RepositoryPreparation } from './git/repository-preparation.js';
import { LazyApp } from './http/lazy-app.js';
import { SessionKeys } from './http/session-keys.js';
import { listening, listenOnSocket, networkConnected, startRelays } from './port-relay.js';
import { SkillReader } from './skills/skill-reader.js';
import { WebhookSender } from './webhooks/webhook-sender.js';

/** Longer than the keep-alive of clients, so that the sender decides when a connection ends. */
const KEEP_ALIVE_MS = 65_000;
const UPLOAD_TIMEOUT_MS = 3_600_000;
/** Clients put the input of commands there, and fetch their output. */
const TEMPORARY_FOLDER = '/tmp';
const WEBHOOK_STOP_GRACE_MS = 2_000;

export interface RunningAgentServer {
  /** TCP port; null if it listens on a Unix socket. */
  port: number | null;
  /** Ends runs and commands; all state is on disk afterwards. */
  stop(): Promise<void>;
}

/** Responds only to liveness probes until it has its session key. */
interface UnassignedAgentServer extends RunningAgentServer {
  /** Loads the state that an earlier server left, then serves. To be called once. */
  assign(options: AgentServerOptions): Promise<void>;
}

/**
 * Listens. Express and zod are loaded later, by `LazyApp`.
 * @param prepareNetwork what calls by way of it would do first; here, where it waits for its session key for long enough
 */
export async function listenUnassigned(
  options: ListenOptions,
  prepareNetwork: () => void = () => undefined,
): Promise<UnassignedAgentServer> {
  // No browser can reach a Unix socket.
  const hosts = new AllowedHosts({ listenHost: options.socket === null ? options.host : '', configured: [] });
  const app = new LazyApp(hosts, async () => {
    await import('./http/app.js');
    prepareNetwork();
  });
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: UPLOAD_TIMEOUT_MS },
    (request, response) => handleTraced(request, response, app.handle),
  );
  server.on('upgrade', app.upgrade);
  const relays = await startRelays(options.relays);
  const port = await listen(server, options);
  const stopping = new AbortController();
  let assigned: Promise<AssignedServer> | null = null;
  return {
    port,
    assign: async (later) => {
      assigned = assign(app, later, stopping.signal);
      await assigned;
    },
    stop: async () => {
      stopping.abort();
      server.close();
      relays.close();
      const parts = await assigned;
      await parts?.endWork();
      await app.close();
      await parts?.sendWebhooks();
      server.closeAllConnections();
    },
  };
}

/** What a stop has to end, in this order. */
interface AssignedServer {
  endWork(): Promise<void>;
  sendWebhooks(): Promise<void>;
}

async function assign(
  app: LazyApp,
  options: AgentServerOptions,
  stopping: AbortSignal,
): Promise<AssignedServer> {
  const { workspace, aliases, environment, sessionKeys, toolWrapper: wrapper } = options;
  await mkdir(workspace, { recursive: true });
  const view = { environment, wrapper, aliases };
  const kept = [workspace, ...options.fileRoots];
  const files = new WorkspaceFiles(view, [...kept, TEMPORARY_FOLDER]);
  const skills = new SkillReader({ view, files, workspace });
  const keys = new SessionKeys(sessionKeys);
  const settings = new ClientSettings();
  const conversations = new Conversations({
    ...options,
    skills,
    ownSecret: (url, headers) => settings.lookedUp(url, headers, keys),
  });
  const commands = new BashCommands({
    log: await EventLog.open(path.join(options.bashEventsPath, 'events.jsonl'), { whenFull: 'clear' }),
    workspace,
    view,
    masker: (secrets) => conversations.masker(secrets),
  });
  const transfers = privateFolder(options.conversationsPath);
  const preparation = new RepositoryPreparation({
    view,
    workspace,
    files: new WorkspaceFiles(view, kept),
    privateFolder: transfers,
  });
  const activity = new ActivityTracker(
    () => commands.isRunning || preparation.isRunning || conversations.all().some(({ isBusy }) => isBusy),
  );
  if (keys.isOpen) {
    log('warn', 'no session key configured: anyone who can reach this server can use it');
  }
  const webhooks =
    options.webhook && new WebhookSender({ ...options.webhook, sessionKey: sessionKeys[0] ?? null });
  reportConversations(conversations, webhooks, activity);
  await watchReserve(options.conversationsPath, stopping);
  await Promise.all([
    conversations.load(),
    commands.closeInterrupted(),
    // Left over from transfers that an earlier process did not finish.
    rm(transfers, { recursive: true, force: true }),
  ]);
  app.assign(async () => {
    // Whatever uses the network begins with a request.
    const connected = options.awaitNetwork ? networkConnected(stopping) : null;
    const [{ createHttpApp }] = await Promise.all([import('./http/app.js'), connected]);
    return createHttpApp({
      ...options,
      conversations,
      commands,
      files,
      git: new GitWorkspace(view, files, workspace),
      preparation,
      push: async (folder, request) =>
        await pushBranch({ view, files, privateFolder: transfers }, folder, request),
      skills,
      settings,
      keys,
      activity,
      instanceId: randomUUID(),
      view,
      withholdReports: (conversationId) => webhooks?.withhold(conversationId) ?? (() => undefined),
    });
  });
  return {
    endWork: async () => {
      await Promise.all([conversations.stop(options.stopGraceMs), commands.stop(), preparation.stop()]);
      await commands.log.close();
    },
    sendWebhooks: async () => await webhooks?.stop(WEBHOOK_STOP_GRACE_MS),
  };
}

function reportConversations(
  conversations: Conversations,
  webhooks: WebhookSender | null,
  activity: ActivityTracker,
): void {
  conversations.subscribe({
    added: (conversation) => {
      webhooks?.conversationChanged(conversation.info());
      conversation.log.onAppend((event) => {
        activity.touch();
        webhooks?.eventAppended(conversation.id, event);
      });
    },
    changed: (conversation) => webhooks?.conversationChanged(conversation.info()),
    removed: (info) => webhooks?.conversationRemoved(info),
  });
}

/** @returns the port; null for a Unix socket */
async function listen(server: Server, { host, port, socket }: ListenOptions): Promise<number | null> {
  // Node.js falls back to IPv4 only if no host is given and the kernel has no IPv6.
  const address = host === '::' ? { port } : { host, port };
  await (socket === null ? listening(server, address) : listenOnSocket(server, socket));
  const bound = server.address();
  return typeof bound === 'object' ? (bound?.port ?? null) : null;
}
