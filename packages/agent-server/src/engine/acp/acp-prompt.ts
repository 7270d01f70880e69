import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentEvent, MessageEvent } from '@slipway/agent-protocol/events.js';
import type { EngineSettings } from '../agent-engine.js';

const GO_ON = 'Your work was interrupted. Go on where you stopped.';

interface AcpPrompt {
  blocks: ContentBlock[];
  lastMessage: string | null;
}

interface PromptOptions {
  /** Null: no agent was given a message yet. */
  lastMessage: string | null;
  remembers: boolean;
  takesImages: boolean;
  settings: Pick<EngineSettings, 'systemPromptSuffix' | 'language'>;
  /** What the user said besides messages; null: nothing. */
  remark: string | null;
}

export function unsentMessages(events: readonly AgentEvent[], lastMessage: string | null): MessageEvent[] {
  const after = lastMessage === null ? -1 : events.findLastIndex(({ id }) => id === lastMessage);
  return events.slice(after + 1).filter(isUserMessage);
}

/** What to give the agent now. Without memory, it gets the user's last message again, and is told the rest. */
export function toPrompt(events: readonly AgentEvent[], options: PromptOptions): AcpPrompt {
  const unsent = unsentMessages(events, options.lastMessage);
  const last = events.findLast(isUserMessage);
  const messages = unsent.length > 0 || options.remembers || last === undefined ? unsent : [last];
  const remark = options.remark === null ? [] : [textBlock(options.remark)];
  const said = [...remark, ...messages.flatMap((message) => toBlocks(message, options.takesImages))];
  const blocks = said.length === 0 ? [textBlock(GO_ON)] : said;
  return {
    blocks: options.remembers ? blocks : [...instructions(options.settings), ...blocks],
    lastMessage: messages.at(-1)?.id ?? options.lastMessage,
  };
}

function isUserMessage(event: AgentEvent): event is MessageEvent {
  return event.kind === 'MessageEvent' && event.source === 'user';
}

function instructions({ systemPromptSuffix, language }: PromptOptions['settings']): ContentBlock[] {
  const parts = [systemPromptSuffix, language ? `Answer in this language: ${language}.` : null];
  return parts.flatMap((part) => (part ? [textBlock(part)] : []));
}

function toBlocks({ llm_message, extended_content }: MessageEvent, takesImages: boolean): ContentBlock[] {
  const said = llm_message.content.flatMap((part) =>
    part.type === 'text' ? [textBlock(part.text)] : part.image_urls.map((url) => toImage(url, takesImages)),
  );
  return [...said, ...extended_content.map(({ text }) => textBlock(text))];
}

function toImage(url: string, takesImages: boolean): ContentBlock {
  const [, mimeType, data] = /^data:(image\/[a-z0-9.+-]+);base64,(.*)$/is.exec(url) ?? [];
  if (mimeType !== undefined && data !== undefined) {
    return takesImages
      ? { type: 'image', mimeType, data }
      : textBlock('[The user sent an image, which this agent cannot read.]');
  }
  return /^https?:/i.test(url)
    ? { type: 'resource_link', uri: url, name: url }
    : textBlock('[The user sent an image in a form that this agent cannot read.]');
}

function textBlock(text: string): ContentBlock {
  return { type: 'text', text };
}
