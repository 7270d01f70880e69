import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { clipText } from '../../clipped-text.js';
import type { ToolView } from '../../tool-view.js';
import type { AcpLaunch, EngineHost } from '../agent-engine.js';
import { conversationFailure } from '../limits.js';
import { AcpConversation } from './acp-conversation.js';
import { AcpSession } from './acp-session.js';
import type { McpServer as AcpMcpServer } from '@agentclientprotocol/sdk';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';

export interface OpenAgent {
  session: AcpSession;
  conversation: AcpConversation;
  close: () => Promise<void>;
}

/** Starts a conversation's agent, and continues its earlier session if it can. @throws AcpFailure */
export async function openAgent(host: EngineHost, view: ToolView): Promise<OpenAgent> {
  const launch = launchOf(host);
  const memory = host.memory();
  const conversation = new AcpConversation(host, view);
  const addresses = new OutboundAddresses(host.settings.outboundAllowlist);
  const session = await AcpSession.open({
    view,
    host,
    launch,
    conversation,
    earlier: rememberedText(memory['sessionId']),
    mcpServers: (takes) => toMcpServers(host.settings.mcpConfig, takes, addresses),
  });
  const close = async (): Promise<void> => {
    await conversation.close();
    await session.close();
  };
  try {
    conversation.open(session.id);
    const model = rememberedText(memory['model']) ?? launch.model;
    if (model !== null && model !== session.details.currentModel) {
      await session.switchModel(model);
    }
    if (launch.sessionMode !== null) {
      await session.setMode(launch.sessionMode);
    }
    await announce(host, session);
    return { session, conversation, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function announce(host: EngineHost, session: AcpSession): Promise<void> {
  const { isBegun, ...memory } = host.memory();
  await announceAgent(host, session);
  for (const problem of session.mcpProblems) {
    await host.append(conversationFailure('McpServerUnavailable', problem));
  }
  if (isBegun === true && !session.isLoaded) {
    const why = session.canLoad ? 'no longer has its session' : 'cannot load earlier sessions';
    await host.append(
      conversationFailure(
        'ACPSessionLost',
        `The agent was started again and ${why}: it does not remember what was said and done before. Its files are as it left them.`,
      ),
    );
  }
  await host.remember({
    ...memory,
    sessionId: session.id,
    isBegun: session.isLoaded && isBegun === true,
    costSeen: session.isLoaded ? (memory['costSeen'] ?? 0) : 0,
  });
  await host.describeAgent(session.details);
}

async function announceAgent(host: EngineHost, { details: { name, version } }: AcpSession): Promise<void> {
  const title = clipText(`${name} ${version}`.trim() || 'an agent', 200);
  const text = `This conversation is run by ${title}, which has a system prompt and tools of its own (Agent Client Protocol).`;
  const isAnnounced = host
    .events()
    .some((event) => event.kind === 'SystemPromptEvent' && event.system_prompt.text === text);
  if (!isAnnounced) {
    await host.append({
      kind: 'SystemPromptEvent',
      source: 'agent',
      system_prompt: { type: 'text', text },
      tools: [],
    });
  }
}

export function launchOf({ settings }: EngineHost): AcpLaunch {
  if (settings.acp === null) {
    throw new Error('the conversation names no agent to start');
  }
  return settings.acp;
}

/** Null for anything but a text: tools may change the engine's memory on disk. */
export function rememberedText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** The user's tool servers in the form that the agent accepts, and a sentence about each one that it cannot use. */
export interface OfferedMcpServers {
  servers: AcpMcpServer[];
  problems: string[];
}

/** The agent connects to them itself, from where tools run, so their addresses are checked only here. */
export function toMcpServers(
  configured: McpServers | null,
  takes: { http: boolean; sse: boolean },
  addresses: OutboundAddresses,
): OfferedMcpServers {
  const offered: OfferedMcpServers = { servers: [], problems: [] };
  for (const [name, server] of Object.entries(configured ?? {})) {
    if (server.tools !== undefined) {
      const detail = `The tool server ${name} offers all of its tools: agents of others take no list of allowed ones.`;
      offered.problems.push(detail);
    }
    if ('command' in server) {
      const { command, args = [], env = {} } = server;
      offered.servers.push({ name, command, args, env: toList(env) });
      continue;
    }
    const { transport: type, url, headers = {} } = server;
    const problem = takes[type] ? addresses.problem(url) : `the agent supports no tool servers over ${type}.`;
    if (problem === null) {
      offered.servers.push({ type, name, url, headers: toList(headers) });
    } else {
      offered.problems.push(`The tool server ${name} cannot be used: ${problem}`);
    }
  }
  return offered;
}

function toList(values: Record<string, string>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
