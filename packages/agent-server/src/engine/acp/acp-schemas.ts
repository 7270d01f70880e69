import { z } from 'zod';

// What agents send, reduced to what is used. The agent is a third-party program that reads untrusted text: invalid
// members are left out where the rest makes sense, and the code that writes a text into the log clips it.

const id = z.string().min(1).max(512);
const flag = z.boolean().catch(false);
const text = z.string();

/** A member that is left out where it is invalid. */
function optional<T extends z.ZodType>(schema: T): z.ZodCatch<z.ZodOptional<z.ZodNullable<T>>> {
  return schema.nullish().catch(null);
}

/** What people are shown. */
const described = { name: text.catch(''), description: optional(text) };

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
  agentInfo: optional(z.object({ name: text.catch(''), version: text.catch('') })),
  agentCapabilities: capabilities.catch(() => capabilities.parse({})),
  authMethods: z
    .array(
      z.object({
        id,
        ...described,
        /** The variables that it takes instead of a dialog. */
        vars: z.array(z.object({ name: text, optional: z.boolean().catch(false) })).catch([]),
      }),
    )
    .catch([]),
});

export type AgentDescription = z.infer<typeof initializeSchema>;

const choice = z.object({ value: id, ...described });
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
  category: optional(text),
  type: text,
  currentValue: z.unknown().optional(),
  options: choices,
});

/** An option that cannot be used does not invalidate the others. */
const configOptions = optional(z.array(configOption.nullable().catch(null))).transform((options) =>
  (options ?? []).filter((option) => option !== null),
);

/** The older way of naming models, before there were configuration options. */
const models = optional(
  z.object({
    currentModelId: optional(id),
    availableModels: z.array(z.object({ modelId: id, ...described })).catch([]),
  }),
);

const modes = optional(z.object({ availableModes: z.array(z.object({ id })).catch([]) }));

const sessionMembers = { models, modes, configOptions };

export const newSessionSchema = z.object({ sessionId: id, ...sessionMembers });
/** Some agents respond without a result. */
export const loadedSessionSchema = z.preprocess((value) => value ?? {}, z.object(sessionMembers));
export const configChangeSchema = z.preprocess((value) => value ?? {}, z.object({ configOptions }));

export type SessionDescription = z.infer<typeof loadedSessionSchema>;

const count = z.number().nonnegative().catch(0);

export const promptResponseSchema = z.object({
  stopReason: text,
  usage: optional(
    z.object({ inputTokens: count, outputTokens: count, cachedReadTokens: count, cachedWriteTokens: count }),
  ),
  _meta: optional(
    z.object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) }),
  ),
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
    oldText: optional(text),
    newText: text.catch(''),
  }),
  z.object({ type: z.literal('terminal'), terminalId: id }),
]);

export type ToolContent = z.infer<typeof toolContent>;

const toolContents = optional(z.array(toolContent.nullable().catch(null))).transform(
  (parts) => parts?.filter((part) => part !== null) ?? null,
);

const TOOL_STATUSES = ['pending', 'in_progress', 'completed', 'failed'] as const;
export type ToolStatus = (typeof TOOL_STATUSES)[number];

const toolCall = z.object({
  toolCallId: id,
  title: optional(text),
  kind: optional(text.max(64)),
  status: optional(z.enum(TOOL_STATUSES)),
  content: toolContents,
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
});

export type ToolCallReport = z.infer<typeof toolCall>;

const update = z.discriminatedUnion('sessionUpdate', [
  z.object({
    sessionUpdate: z.literal('agent_message_chunk'),
    messageId: optional(id),
    content: contentBlock,
    /** Qwen Code reports here what a model call took, cached input included. */
    _meta: optional(z.object({ usage: z.object({ inputTokens: count, outputTokens: count }) })),
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
    cost: optional(z.object({ amount: z.number().nonnegative(), currency: text })),
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
