import { z } from 'zod';

// What agents send, reduced to what is used. The agent is a third-party program that reads untrusted text: invalid
// members are left out where the rest makes sense, and the code that writes a text into the log clips it.

const id = z.string().min(1).max(512);
const flag = z.boolean().catch(false);
const text = z.string();

/** A capability: present, whatever its content, or absent. */
const support = z
  .unknown()
  .optional()
  .transform((value) => typeof value === 'object' && value !== null)
  .catch(false);

const capabilities = z.object({
  loadSession: flag,
  promptCapabilities: z.object({ image: flag }).catch({ image: false }),
  mcpCapabilities: z.object({ http: flag, sse: flag }).catch({ http: false, sse: false }),
  sessionCapabilities: z.object({ fork: support }).catch({ fork: false }),
});

export const initializeSchema = z.object({
  protocolVersion: z.number(),
  agentInfo: z
    .object({ name: text.catch(''), version: text.catch('') })
    .nullish()
    .catch(null),
  agentCapabilities: capabilities.catch(() => capabilities.parse({})),
  authMethods: z
    .array(
      z.object({
        id,
        name: text.catch(''),
        description: text.nullish().catch(null),
        /** The variables that it takes instead of a dialog. */
        vars: z.array(z.object({ name: text, optional: z.boolean().catch(false) })).catch([]),
      }),
    )
    .catch([]),
});

export type AgentDescription = z.infer<typeof initializeSchema>;

const choice = z.object({ value: id, name: text.catch(''), description: text.nullish().catch(null) });
/** Choices may come in groups. */
const choices = z
  .array(
    z.union([
      choice.transform((one) => [one]),
      z.object({ options: z.array(choice) }).transform((g) => g.options),
    ]),
  )
  .transform((groups) => groups.flat())
  .catch([]);

const configOption = z.object({
  id,
  category: text.nullish().catch(null),
  type: text,
  currentValue: z.unknown().optional(),
  options: choices,
});

/** An option that cannot be used does not invalidate the others. */
const configOptions = z
  .array(configOption.nullable().catch(null))
  .nullish()
  .catch(null)
  .transform((options) => (options ?? []).filter((option) => option !== null));

/** The older way of naming models, before there were configuration options. */
const models = z
  .object({
    currentModelId: id.nullish().catch(null),
    availableModels: z
      .array(z.object({ modelId: id, name: text.catch(''), description: text.nullish().catch(null) }))
      .catch([]),
  })
  .nullish()
  .catch(null);

const modes = z
  .object({ availableModes: z.array(z.object({ id })).catch([]) })
  .nullish()
  .catch(null);

const sessionMembers = { models, modes, configOptions };

export const newSessionSchema = z.object({ sessionId: id, ...sessionMembers });
/** Some agents respond without a result. */
export const loadedSessionSchema = z.preprocess((value) => value ?? {}, z.object(sessionMembers));
export const configChangeSchema = z.preprocess((value) => value ?? {}, z.object({ configOptions }));

export type SessionDescription = z.infer<typeof loadedSessionSchema>;

const count = z.number().nonnegative().catch(0);

export const promptResponseSchema = z.object({
  stopReason: text,
  usage: z
    .object({ inputTokens: count, outputTokens: count, cachedReadTokens: count, cachedWriteTokens: count })
    .nullish()
    .catch(null),
  _meta: z
    .object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) })
    .nullish()
    .catch(null),
});

export type PromptResponse = z.infer<typeof promptResponseSchema>;

const shownContent = z.object({
  type: text,
  text: text.optional(),
  uri: text.optional(),
  name: text.optional(),
});

const contentBlock = z.unknown().transform((block) => {
  const { data } = shownContent.safeParse(block);
  if (data === undefined) {
    return '';
  }
  return (
    data.text ??
    (data.type === 'resource_link' ? `[${data.name ?? data.uri ?? data.type}]` : `[${data.type}]`)
  );
});

const toolContent = z.union([
  z.object({ type: z.literal('content'), content: contentBlock }),
  z.object({
    type: z.literal('diff'),
    path: text,
    oldText: text.nullish().catch(null),
    newText: text.catch(''),
  }),
  z.object({ type: z.literal('terminal'), terminalId: id }),
]);

export type ToolContent = z.infer<typeof toolContent>;

const toolContents = z
  .array(toolContent.nullable().catch(null))
  .nullish()
  .catch(null)
  .transform((parts) => parts?.filter((part) => part !== null) ?? null);

const TOOL_STATUSES = ['pending', 'in_progress', 'completed', 'failed'] as const;
export type ToolStatus = (typeof TOOL_STATUSES)[number];

const toolCall = z.object({
  toolCallId: id,
  title: text.nullish().catch(null),
  kind: text.max(64).nullish().catch(null),
  status: z.enum(TOOL_STATUSES).nullish().catch(null),
  content: toolContents,
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
});

export type ToolCallReport = z.infer<typeof toolCall>;

const update = z.discriminatedUnion('sessionUpdate', [
  z.object({
    sessionUpdate: z.literal('agent_message_chunk'),
    messageId: id.nullish().catch(null),
    content: contentBlock,
    /** Qwen Code reports here what a model call took, cached input included. */
    _meta: z
      .object({ usage: z.object({ inputTokens: count, outputTokens: count }) })
      .nullish()
      .catch(null),
  }),
  z.object({ sessionUpdate: z.literal('agent_thought_chunk'), content: contentBlock }),
  toolCall.extend({ sessionUpdate: z.literal('tool_call') }),
  toolCall.extend({ sessionUpdate: z.literal('tool_call_update') }),
  z.object({
    sessionUpdate: z.literal('plan'),
    entries: z.array(
      z.object({
        content: text.catch(''),
        status: z.enum(['pending', 'in_progress', 'completed']).catch('pending'),
      }),
    ),
  }),
  z.object({
    sessionUpdate: z.literal('usage_update'),
    cost: z.object({ amount: z.number().nonnegative(), currency: text }).nullish().catch(null),
  }),
  z.object({ sessionUpdate: z.literal('config_option_update'), configOptions }),
]);

/** Updates of other kinds concern editors only, and are not parsed. */
export const sessionUpdateSchema = z.object({ sessionId: id, update });

export type SessionUpdate = z.infer<typeof update>;

const permissionOption = z.object({
  optionId: id,
  name: text.catch(''),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']).nullable().catch(null),
});

export type PermissionOption = z.infer<typeof permissionOption>;

export const permissionSchema = z.object({
  sessionId: id,
  toolCall,
  options: z.array(permissionOption).max(100),
});

export type PermissionRequest = z.infer<typeof permissionSchema>;
export type PermissionOutcome = { outcome: 'selected'; optionId: string } | { outcome: 'cancelled' };
