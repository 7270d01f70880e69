import type { ToolNotice } from '../../tools/mcp/mcp-toolbox.js';
import type { EngineHost } from '../agent-engine.js';
import { conversationFailure } from '../limits.js';
import type { NativeTools } from './native-tools.js';
import { dynamicContext, systemPrompt } from './system-prompt.js';

/** Connects the tool servers and reports their problems; writes the system prompt unless the log has it. */
export async function prepareRun(host: EngineHost, tools: NativeTools): Promise<void> {
  await report(host, await tools.connect());
  const { settings } = host;
  const last = host.events().findLast((event) => event.kind === 'SystemPromptEvent');
  const context = dynamicContext(settings);
  if (last?.kind === 'SystemPromptEvent' && last.dynamic_context?.text === context) {
    return;
  }
  await host.append({
    kind: 'SystemPromptEvent',
    source: 'agent',
    system_prompt: { type: 'text', text: systemPrompt() },
    dynamic_context: { type: 'text', text: context },
    tools: [...tools.offeredTools(settings).values()].map((tool) => tool.definition()),
  });
}

export async function refreshTools(host: EngineHost, tools: NativeTools, signal: AbortSignal): Promise<void> {
  await report(host, await tools.refresh(signal));
}

async function report(host: EngineHost, notices: readonly ToolNotice[]): Promise<void> {
  for (const { code, detail } of notices) {
    await host.append(conversationFailure(code, detail));
  }
}
