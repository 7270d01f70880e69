import { AgentUnavailableError, type EngineHost } from '../agent-engine.js';
import { countUsage, limitReached } from './usage.js';
import type { ModelOf } from './language-model.js';
import { LlmFailure } from './llm-failure.js';
import { messagesFromEvents } from './messages-from-events.js';
import { patientStep, type Wait } from './model-step.js';
import type { NativeTools } from './native-tools.js';
import { systemPrompt } from './system-prompt.js';
import { offeredTool } from './tool-calls.js';

const NOTE =
  'This question is asked beside your work. Answer it in words, from what you know by now; call no tool. Afterwards your work goes on as if it had not been asked.';

export interface AskModelOptions {
  host: EngineHost;
  question: string;
  modelOf: ModelOf;
  /** What the history may have calls of. */
  tools: NativeTools;
  signal: AbortSignal;
  wait: Wait;
}

/**
 * Puts a question to the model that is in no log.
 *
 * @throws AgentUnavailableError when the model cannot be asked or does not answer
 */
export async function askModel({
  host,
  question,
  modelOf,
  tools,
  signal,
  wait,
}: AskModelOptions): Promise<string> {
  const { settings } = host;
  const { costUsd } = host.totals();
  const limit = limitReached(settings, { costUsd, iterations: 0 });
  if (limit !== null) {
    throw new AgentUnavailableError(limit.detail);
  }
  const { instructions, messages } = messagesFromEvents(host.events());
  const asked = [...messages, { role: 'user' as const, content: `${NOTE}\n\n${question}` }];
  try {
    const answer = await patientStep(
      {
        model: modelOf(settings),
        instructions: instructions ?? systemPrompt(),
        messages: asked,
        tools: [...tools.offered(settings).values()].map((tool) => offeredTool(tool, false)),
        toolChoice: 'none',
        signal,
      },
      wait,
    );
    await countUsage(host, settings, answer, asked, false);
    return answer.text;
  } catch (error) {
    if (error instanceof LlmFailure) {
      throw new AgentUnavailableError(error.message, { cause: error });
    }
    throw error;
  }
}
