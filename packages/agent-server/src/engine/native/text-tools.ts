import type { LanguageModelMiddleware } from 'ai';
import { randomUUID } from 'node:crypto';
import { isJsonObject } from '@slipway/common/json-access.js';
import {
  type KnownTools,
  parseTextCalls,
  RESULT_MARK,
  textOfCall,
  textOfResult,
  toolInstructions,
} from './text-tool-calls.js';

type WrapStream = NonNullable<LanguageModelMiddleware['wrapStream']>;
type CallOptions = Parameters<WrapStream>[0]['params'];
type Message = CallOptions['prompt'][number];
type UserMessage = Extract<Message, { role: 'user' }>;
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;
type ResultPart = Extract<ToolMessage['content'][number], { type: 'tool-result' }>;
type Offered = NonNullable<CallOptions['tools']>[number];
type StreamPart = Awaited<ReturnType<WrapStream>>['stream'] extends ReadableStream<infer Part> ? Part : never;

/** For models without function calling: tools are described in the system prompt, called and answered in text. */
export function textTools({ stop }: { stop: boolean }): LanguageModelMiddleware {
  return {
    specificationVersion: 'v4',
    wrapStream: async ({ params, model }) => {
      const { tools = [], toolChoice, prompt, ...rest } = params;
      const offered = toolChoice?.type === 'none' ? [] : tools.filter((tool) => tool.type === 'function');
      const { stream, ...result } = await model.doStream({
        ...rest,
        prompt: toTextPrompt(prompt, offered),
        // Not the closing tag of a call: it may be part of a file that the model writes.
        ...(stop && offered.length > 0 && { stopSequences: [...(rest.stopSequences ?? []), RESULT_MARK] }),
      });
      const known = new Map(offered.map(({ name, inputSchema }) => [name, parametersOf(inputSchema)]));
      return { ...result, stream: offered.length === 0 ? stream : stream.pipeThrough(callsFromText(known)) };
    },
  };
}

type FunctionTool = Extract<Offered, { type: 'function' }>;

function parametersOf({ properties }: FunctionTool['inputSchema']): string[] {
  return isJsonObject(properties) ? Object.keys(properties) : [];
}

/** Chat templates take user and agent in turns, so messages of the user that follow each other are joined. */
function toTextPrompt(prompt: readonly Message[], tools: readonly FunctionTool[]): Message[] {
  const [first, ...others] = prompt;
  const rest = first?.role === 'system' ? others : prompt;
  const system = [
    first?.role === 'system' ? first.content : '',
    tools.length > 0 ? toolInstructions(tools) : '',
  ];
  const content = system.filter((part) => part !== '').join('\n\n');
  const messages: Message[] =
    content === '' ? [] : [{ ...(first?.role === 'system' && first), role: 'system', content }];
  for (const message of rest) {
    const converted = toTextMessage(message);
    const last = messages.at(-1);
    if (last?.role === 'user' && converted.role === 'user') {
      messages[messages.length - 1] = { ...last, content: [...last.content, ...converted.content] };
    } else {
      messages.push(converted);
    }
  }
  return messages;
}

function toTextMessage(message: Message): Message {
  switch (message.role) {
    case 'assistant':
      return fromAssistant(message);
    case 'tool':
      return fromResults(message);
    default:
      return message;
  }
}

function fromAssistant({ content, ...message }: AssistantMessage): AssistantMessage {
  const texts = content.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return [part.text];
      case 'tool-call':
        return [textOfCall(part.toolName, part.input)];
      default:
        return [];
    }
  });
  const others = content.filter(({ type }) => !['text', 'tool-call', 'tool-result'].includes(type));
  const text = texts.join('\n\n');
  return { ...message, content: text === '' ? others : [...others, { type: 'text', text }] };
}

function fromResults({ content, ...message }: ToolMessage): UserMessage {
  const parts = content.flatMap((part) =>
    part.type === 'tool-result'
      ? [{ type: 'text' as const, text: textOfResult(part.toolName, resultText(part.output)) }]
      : [],
  );
  return { ...message, role: 'user', content: parts };
}

/** Our results are texts. */
function resultText(output: ResultPart['output']): string {
  return output.type === 'text' || output.type === 'error-text' ? output.value : JSON.stringify(output);
}

/** Holds the text back until the answer is complete, because only then it is known what is a call. */
function callsFromText(tools: KnownTools): TransformStream<StreamPart, StreamPart> {
  let whole = '';
  return new TransformStream<StreamPart, StreamPart>({
    transform: (part, controller) => {
      switch (part.type) {
        case 'text-start':
        case 'text-end':
          return;
        case 'text-delta':
          whole += part.delta;
          return;
        case 'finish': {
          const { text, calls } = parseTextCalls(whole, tools);
          answerParts(text, calls).forEach((each) => controller.enqueue(each));
          const isCalling = calls.length > 0 && part.finishReason.unified === 'stop';
          const finishReason = { ...part.finishReason, ...(isCalling && { unified: 'tool-calls' as const }) };
          controller.enqueue({ ...part, finishReason });
          return;
        }
        default:
          controller.enqueue(part);
      }
    },
  });
}

function answerParts(text: string, calls: ReturnType<typeof parseTextCalls>['calls']): StreamPart[] {
  const id = randomUUID();
  const said: StreamPart[] =
    text === ''
      ? []
      : [
          { type: 'text-start', id },
          { type: 'text-delta', id, delta: text },
          { type: 'text-end', id },
        ];
  return [
    ...said,
    ...calls.flatMap(({ name: toolName, arguments: input }): StreamPart[] => {
      const toolCallId = `call_${randomUUID()}`;
      return [
        { type: 'tool-input-start', id: toolCallId, toolName },
        { type: 'tool-input-delta', id: toolCallId, delta: input },
        { type: 'tool-input-end', id: toolCallId },
        { type: 'tool-call', toolCallId, toolName, input },
      ];
    }),
  ];
}
