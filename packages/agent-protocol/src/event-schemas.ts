import { z } from 'zod';

/*
 * Events as logs have them, those of the stock agent server included: any of them may have further members, and what
 * actions and observations hold depends on the tool.
 */
const text = z.string();
const textOrNull = text.nullish();

export const textContent = z
  .object({ type: z.literal('text'), text, cache_prompt: z.boolean().optional() })
  .meta({ id: 'TextContent' });
const imageContent = z
  .object({ type: z.literal('image'), image_urls: z.array(text), cache_prompt: z.boolean().optional() })
  .meta({ id: 'ImageContent' });
export const content = z.array(z.discriminatedUnion('type', [textContent, imageContent]));

const toolCall = z
  .object({
    id: text,
    name: text,
    arguments: text.meta({ description: 'JSON.' }),
    origin: z.enum(['completion', 'responses']),
  })
  .meta({ id: 'ToolCall' });

export const thinkingBlock = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('thinking'), thinking: text, signature: textOrNull }),
    z.object({ type: z.literal('redacted_thinking'), data: text }),
  ])
  .meta({ id: 'ThinkingBlock' });

export const message = z
  .object({
    role: z.enum(['user', 'system', 'assistant', 'tool']),
    content: content.optional(),
    tool_calls: z.array(toolCall).nullish(),
    tool_call_id: textOrNull,
    name: textOrNull,
    reasoning_content: textOrNull,
    thinking_blocks: z.array(thinkingBlock).optional(),
  })
  .meta({ id: 'Message' });

export const securityRisk = z.enum(['UNKNOWN', 'LOW', 'MEDIUM', 'HIGH']).meta({ id: 'SecurityRisk' });
const action = z
  .object({ kind: text.meta({ description: 'Such as TerminalAction.' }) })
  .meta({ id: 'Action' });
const observation = z
  .object({
    kind: text.meta({ description: 'Such as TerminalObservation.' }),
    content: content.optional(),
    is_error: z.boolean().optional(),
  })
  .meta({ id: 'Observation' });
const toolDefinition = z
  .object({ kind: text, title: text, description: text })
  .meta({ id: 'ToolDefinition' });

const ofAll = {
  id: text,
  timestamp: text.meta({ description: 'ISO 8601; UTC where no zone is given.' }),
  source: z.enum(['agent', 'user', 'environment', 'hook']),
};

type EventSchema<Kind extends string, Members extends z.ZodRawShape> = z.ZodObject<
  { kind: z.ZodLiteral<Kind> } & typeof ofAll & Members
>;

function event<Kind extends string, Members extends z.ZodRawShape>(
  kind: Kind,
  members: Members,
): EventSchema<Kind, Members> {
  return z.object({ kind: z.literal(kind), ...ofAll, ...members }).meta({ id: kind });
}

const ofCall = { tool_name: text, tool_call_id: text };
const failure = { code: text, detail: text };

export const eventSchema = z.discriminatedUnion('kind', [
  event('MessageEvent', {
    llm_message: message,
    llm_response_id: textOrNull,
    activated_skills: z.array(text).optional(),
    extended_content: z.array(textContent).optional(),
    sender: textOrNull,
    /** The conversation whose agent sent the message; the event's source is `agent` then. */
    sender_conversation_id: textOrNull,
  }),
  event('ActionEvent', {
    ...ofCall,
    thought: z.array(textContent),
    reasoning_content: textOrNull,
    thinking_blocks: z.array(thinkingBlock).optional(),
    action: action.nullish(),
    tool_call: toolCall,
    llm_response_id: text,
    security_risk: securityRisk.optional(),
    summary: textOrNull,
  }),
  event('ObservationEvent', { ...ofCall, observation, action_id: text }),
  event('AgentErrorEvent', { ...ofCall, error: text }),
  event('UserRejectObservation', {
    ...ofCall,
    action_id: text,
    rejection_reason: text.optional(),
    rejection_source: z.enum(['user', 'hook']).optional(),
  }),
  event('ACPToolCallEvent', {
    tool_call_id: text,
    title: text,
    status: textOrNull,
    tool_kind: textOrNull,
    raw_input: z.unknown().optional(),
    raw_output: z.unknown().optional(),
    content: z.array(z.unknown()).nullish(),
    is_error: z.boolean().optional(),
  }),
  event('ConversationStateUpdateEvent', { key: text.optional(), value: z.unknown().optional() }),
  event('ConversationErrorEvent', failure),
  event('PauseEvent', {}),
  event('SystemPromptEvent', {
    system_prompt: textContent,
    tools: z.array(toolDefinition),
    dynamic_context: textContent.nullish(),
  }),
  event('Condensation', {
    forgotten_event_ids: z.array(text).optional(),
    summary: textOrNull,
    summary_offset: z.number().nullish(),
    llm_response_id: text,
  }),
  // Only the stock agent server writes the kinds below.
  event('CondensationRequest', {}),
  event('CondensationSummaryEvent', { summary: text }),
  event('HookExecutionEvent', {
    hook_event_type: text,
    hook_command: text,
    success: z.boolean(),
    exit_code: z.number(),
  }),
  event('InterruptEvent', {}),
  event('LLMCompletionLogEvent', { filename: text, log_data: text }),
  event('SecurityAnalysisEvent', { analyzer: text, policy: text, risks: z.looseObject({}) }),
  event('ServerErrorEvent', failure),
  event('StreamingDeltaEvent', { content: textOrNull, reasoning_content: textOrNull }),
  event('TokenEvent', { prompt_token_ids: z.array(z.number()), response_token_ids: z.array(z.number()) }),
]);
