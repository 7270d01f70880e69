import type { ScriptedAnswer } from './scripted-llm.answers.js';

type Spoken = Extract<ScriptedAnswer, { kind: 'answer' | 'cut' | 'stall' | 'streamError' }>;

interface Asked {
  model: string;
  messages: unknown[];
  tools?: unknown[];
}

/** The chunks of a streamed answer, the usage last, as the OpenAI API sends them with `include_usage`. */
export function answerChunks(answer: Spoken, asked: Asked, index: number): Record<string, unknown>[] {
  const chunk = (members: Record<string, unknown>) => ({
    id: `chatcmpl-${index}`,
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: asked.model,
    ...members,
  });
  const delta = (value: Record<string, unknown>) =>
    chunk({ choices: [{ index: 0, delta: value, finish_reason: null }] });
  const chunks = [delta({ role: 'assistant', content: '' })];
  if (answer.kind !== 'answer') {
    const error = answer.kind === 'streamError' ? [{ error: answer.error }] : [];
    return [...chunks, ...pieces(answer.text).map((content) => delta({ content })), ...error];
  }
  const member = answer.reasoningMember ?? 'reasoning_content';
  chunks.push(...pieces(answer.reasoning ?? '').map((text) => delta({ [member]: text })));
  if (answer.members !== undefined) {
    chunks.push(delta(answer.members));
  }
  chunks.push(...pieces(answer.text ?? '').map((content) => delta({ content })));
  for (const [position, call] of toolCalls(answer, index).entries()) {
    const { name, arguments: args } = call.function;
    chunks.push(
      delta({ tool_calls: [{ ...call, index: position, function: { name, arguments: '' } }] }),
      ...pieces(args).map((text) =>
        delta({ tool_calls: [{ index: position, function: { arguments: text } }] }),
      ),
    );
  }
  chunks.push(chunk({ choices: [{ index: 0, delta: {}, finish_reason: finishReason(answer) }] }));
  chunks.push(chunk({ choices: [], usage: usageOf(answer, asked) }));
  return chunks;
}

/** The same in one piece. */
export function answerWhole(
  answer: Extract<Spoken, { kind: 'answer' }>,
  asked: Asked,
  index: number,
): Record<string, unknown> {
  const tools = toolCalls(answer, index);
  return {
    id: `chatcmpl-${index}`,
    object: 'chat.completion',
    created: 1_700_000_000,
    model: asked.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: answer.text ?? null,
          ...(answer.reasoning === undefined ? {} : { reasoning_content: answer.reasoning }),
          ...(tools.length > 0 ? { tool_calls: tools } : {}),
        },
        finish_reason: finishReason(answer),
      },
    ],
    usage: usageOf(answer, asked),
  };
}

function toolCalls(answer: Extract<Spoken, { kind: 'answer' }>, index: number) {
  return (answer.calls ?? []).map((call, position) => ({
    id: call.id ?? `call_${index}_${position}`,
    type: 'function',
    ...call.members,
    function: {
      name: call.name,
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
    },
  }));
}

function finishReason(answer: Extract<Spoken, { kind: 'answer' }>): string {
  return answer.finish ?? ((answer.calls ?? []).length > 0 ? 'tool_calls' : 'stop');
}

export function usageOf(answer: Extract<Spoken, { kind: 'answer' }>, asked: Asked) {
  const prompt =
    answer.usage?.promptTokens ?? Math.ceil(JSON.stringify([asked.messages, asked.tools]).length / 4);
  const completion =
    answer.usage?.completionTokens ??
    Math.ceil((JSON.stringify(answer.calls ?? []).length + (answer.text ?? '').length) / 4);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Uneven pieces, as a tokenizer would cut them. */
export function pieces(text: string): string[] {
  return text.match(/[^]{1,7}/g) ?? [];
}
