import { clipText } from '../../clipped-text.js';
import type { ToolView } from '../../tool-view.js';
import type { AcpLaunch, EngineHost } from '../agent-engine.js';
import { conversationFailure } from '../limits.js';
import { AcpConversation } from './acp-conversation.js';
import { AcpSession } from './acp-session.js';

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
  const session = await AcpSession.open({
    view,
    host,
    launch,
    conversation,
    earlier: rememberedText(memory['sessionId']),
  });
  const close = async (): Promise<void> => {
    await conversation.terminals.close();
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
    promptTokensSeen: session.isLoaded ? (memory['promptTokensSeen'] ?? 0) : 0,
    completionTokensSeen: session.isLoaded ? (memory['completionTokensSeen'] ?? 0) : 0,
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
