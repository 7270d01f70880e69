import type { EngineHost } from '../agent-engine.js';
import { conversationFailure } from './conversation-failure.js';
import type { NativeTools } from './native-tools.js';
import { dynamicContext, systemPrompt } from './system-prompt.js';

/** Opens the tool servers and names those that are dead; writes the system prompt if the log has none yet, or another language. */
export async function prepareRun(host: EngineHost, tools: NativeTools): Promise<void> {
  for (const { server, reason } of await tools.connect()) {
    const detail = `The tool server ${server} cannot be used: ${reason}`;
    await host.append(conversationFailure('McpServerUnavailable', detail));
  }
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
    tools: [...tools.offered(settings).values()].map((tool) => tool.definition()),
  });
}
