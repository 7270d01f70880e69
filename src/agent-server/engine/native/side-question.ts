import { AgentUnavailableError, type EngineHost } from '../agent-engine.js';
import { limitReached } from '../limits.js';
import { countUsage } from './usage.js';
import type { ModelFactory } from './language-model.js';
import { LlmFailure } from './llm-failure.js';
import { messagesFromEvents } from './messages-from-events.js';
import { callModelWithRetries, type Wait } from './model-call.js';
import type { NativeTools } from './native-tools.js';
import { systemPrompt } from './system-prompt.js';
import { offeredTool } from './tool-calls.js';

const INSTRUCTIONS =
  'This question is asked beside your work. Answer it in words, from what you know by now; call no tool. Afterwards your work goes on as if it had not been asked.';

export interface SideQuestionOptions {
  host: EngineHost;
  question: string;
  createModel: ModelFactory;
  /** The tools that the history may have calls of. */
  tools: NativeTools;
  signal: AbortSignal;
  wait: Wait;
}

/**
 * Asks the model a question that is not logged.
 *
 * @throws AgentUnavailableError when the model cannot be asked or does not respond
 */
export async function askSideQuestion({
  host,
  question,
  createModel,
  tools,
  signal,
  wait,
}: SideQuestionOptions): Promise<string> {
  const { settings } = host;
  const { costUsd } = host.totals();
  const limit = limitReached(settings, { costUsd, iterations: 0 });
  if (limit !== null) {
    throw new AgentUnavailableError(limit.detail);
  }
  const { instructions, messages } = messagesFromEvents(host.events());
  const withQuestion = [...messages, { role: 'user' as const, content: `${INSTRUCTIONS}\n\n${question}` }];
  try {
    const response = await callModelWithRetries(
      {
        model: createModel(settings),
        instructions: instructions ?? systemPrompt(),
        messages: withQuestion,
        tools: [...tools.offeredTools(settings).values()].map((tool) => offeredTool(tool, false)),
        toolChoice: 'none',
        signal,
      },
      wait,
    );
    await countUsage(host, settings, response, withQuestion, false);
    return response.text;
  } catch (error) {
    if (error instanceof LlmFailure) {
      throw new AgentUnavailableError(error.message, { cause: error });
    }
    throw error;
  }
}
