import { z } from 'zod';
import { isJsonObject } from '@slipway/common/json-access.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import type { Content } from './events.js';
import { gitAccessSchema } from './git.js';
import { plainMcpConfig } from './plain-mcp-config.js';

const HEX = /^[0-9a-f]{32}$/;

/** Normalizes a conversation's id to a UUID with dashes; null if it is not a UUID. */
export function toConversationId(text: string): string | null {
  const hex = text.toLowerCase().replaceAll('-', '');
  return HEX.test(hex)
    ? `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    : null;
}

export const conversationIdSchema = z.string().transform((text, context) => {
  const id = toConversationId(text);
  if (id === null) {
    context.addIssue({ code: 'custom', message: 'Input should be a valid UUID' });
    return z.NEVER;
  }
  return id;
});

const text = z.object({ type: z.literal('text').default('text'), text: z.string() });
/** Model APIs refuse other URLs, and would refuse the message again at every later step. */
const imageUrl = z.string().refine((url) => /^(https?|data):/i.test(url) && URL.canParse(url), {
  error: 'Input should be an http(s) or data URL',
});
const image = z.object({ type: z.literal('image'), image_urls: z.array(imageUrl) });
const content = z.union([
  z.string().transform((words): Content[] => [{ type: 'text', text: words }]),
  z.array(z.union([image, text])),
]);

export const messageSchema = z.object({
  role: z.literal('user').default('user'),
  content: content.refine((parts) => parts.length > 0, 'A message needs at least one part'),
  run: z.boolean().default(false),
  /** Becomes the id of its event; a message that is already in the log is not added again. */
  id: z.uuid().optional(),
  /** The conversation whose agent sent the message; absent when a person did. */
  sender_conversation_id: conversationIdSchema.optional(),
});

export type IncomingMessage = z.infer<typeof messageSchema>;

const texts = namedValues(z.string(), z.string());

export const mcpServerSchema = z.object({
  command: z.string().optional(),
  args: z.array(z.string()).optional(),
  env: texts.nullish(),
  url: z.string().optional(),
  /** `sse`, or a name of streamable HTTP (`http`, `streamable-http`, `shttp`), which is the default. */
  transport: z.string().nullish(),
  headers: texts.nullish(),
  auth: z.string({ error: 'Input should be a token, or a strategy other than oauth2' }).nullish(),
  /** Slipway extension: names of the offered tools; `*` stands for all. */
  tools: z.array(z.string()).nullish(),
  /** Slipway extension. */
  start_timeout_seconds: z.number().positive().max(3_600).nullish(),
});
const mcpServers = namedValues(z.string(), mcpServerSchema);

export const mcpConfigSchema = z.preprocess(
  (given: z.input<typeof mcpServers>) => plainMcpConfig(given),
  z.object({ mcpServers: mcpServers.optional() }),
);

const description = z.string().nullish();
export const secretSourceSchema = z.union([
  z.string().transform((value) => ({ kind: 'StaticSecret' as const, value })),
  z.object({
    /** Fetched whenever it is needed, because it may change. */
    kind: z.literal('LookupSecret'),
    description,
    url: z.url({ protocol: /^https?$/ }),
    headers: texts.nullish(),
  }),
  z.object({
    kind: z.literal('StaticSecret').default('StaticSecret'),
    description,
    value: z.string().nullable(),
  }),
]);

/** Names become environment variables of the tools. */
export const secretsSchema = namedValues(
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'A name has letters, digits and underscores'),
  secretSourceSchema,
);

export const confirmationPolicySchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('NeverConfirm') }),
  z.object({ kind: z.literal('AlwaysConfirm') }),
  z.object({
    kind: z.literal('ConfirmRisky'),
    threshold: z.enum(['LOW', 'MEDIUM', 'HIGH', 'UNKNOWN']).default('HIGH'),
    confirm_unknown: z.boolean().default(true),
  }),
]);

function isRegularExpression(pattern: string): boolean {
  try {
    RegExp(pattern, 'i');
    return true;
  } catch {
    return false;
  }
}

const patternRules = z
  .array(
    z.tuple([
      z.string().max(1_000).refine(isRegularExpression, 'Input should be a regular expression'),
      z.string().max(500),
      z.string().max(200),
    ]),
  )
  .max(100)
  .optional();
const singleAnalyzer = z.discriminatedUnion('kind', [
  /** The model judges its own calls. */
  z.object({ kind: z.literal('LLMSecurityAnalyzer') }),
  z.object({ kind: z.literal('PolicyRailSecurityAnalyzer') }),
  /** The agent server's own lists apply where these are absent. */
  z.object({
    kind: z.literal('PatternSecurityAnalyzer'),
    high_patterns: patternRules,
    medium_patterns: patternRules,
    injection_high_patterns: patternRules,
    injection_medium_patterns: patternRules,
  }),
]);

/** An analyzer that asks a service elsewhere is rejected rather than ignored. */
export const securityAnalyzerSchema = z
  .discriminatedUnion('kind', [
    ...singleAnalyzer.options,
    z.object({
      kind: z.literal('EnsembleSecurityAnalyzer'),
      analyzers: z.array(singleAnalyzer).min(1).max(10),
      /** Whether one unknown verdict makes the whole unknown. */
      propagate_unknown: z.boolean().default(false),
    }),
  ])
  .nullable();

/** Member names are the reference's; `acp_env` and `acp_auth_method` are Slipway extensions. */
const acpMembers = {
  acp_command: z.array(z.string().min(1)).max(64).nullish(),
  acp_args: z.array(z.string()).max(256).nullish(),
  /** Not secret: secret variables come with the conversation's secrets. */
  acp_env: texts.nullish(),
  /** The model to select; null leaves the choice to the agent. */
  acp_model: z.string().nullish(),
  acp_session_mode: z.string().nullish(),
  acp_auth_method: z.string().nullish(),
  acp_startup_timeout: z.number().positive().max(600).nullish(),
  acp_prompt_timeout: z.number().positive().max(86_400).nullish(),
};

/** The reference's model name for an agent that chooses its model itself. */
const ACP_MODEL = 'acp-managed';

const modelParameters = {
  /** The form to ask the server in; null leaves it to the server's address. */
  api: z.enum(['anthropic', 'openai', 'openai-responses']).nullish(),
  temperature: z.number().nonnegative().nullish(),
  top_p: z.number().nonnegative().nullish(),
  top_k: z.number().nonnegative().nullish(),
  seed: z.number().int().nullish(),
  max_output_tokens: z.number().int().positive().nullish(),
  /** A longer history is condensed. */
  max_input_tokens: z.number().int().positive().nullish(),
  /** False: tools are called in text. */
  native_tool_calling: z.boolean().nullish(),
  /** Whether calls in text are sent without a stop sequence, which some servers refuse. */
  disable_stop_word: z.boolean().nullish(),
  disable_vision: z.boolean().nullish(),
  /** Whether clients are sent answers as they are written, also those that do not ask for it. */
  stream: z.boolean().nullish(),
  api_version: z.string().nullish(),
  openrouter_site_url: z.string().nullish(),
  openrouter_app_name: z.string().nullish(),
  extended_thinking_budget: z.number().int().nonnegative().nullish(),
  /** False: a parameter that the server does not know is an error; otherwise it is left out. */
  drop_params: z.boolean().nullish(),
  reasoning_effort: z.string().nullish(),
  /** Seconds in which the model may send nothing. */
  timeout: z.number().positive().nullish(),
  num_retries: z.number().int().nonnegative().nullish(),
  retry_multiplier: z.number().nonnegative().nullish(),
  /** Seconds. */
  retry_min_wait: z.number().nonnegative().nullish(),
  retry_max_wait: z.number().nonnegative().nullish(),
  /** May hold secrets. */
  extra_headers: texts.nullish(),
  /** Members of each request's body; may hold secrets. */
  litellm_extra_body: namedValues(z.string(), z.unknown()).nullish(),
};

const model = {
  model: z.string().min(1),
  api_key: z.string().nullish(),
  base_url: z.string().nullish(),
  ...modelParameters,
};

const triggerWords = z.array(z.string().min(1).max(200)).max(100);
const givenSkill = z.looseObject({
  name: z.string().min(1).max(200),
  content: z.string(),
  source: z.string().nullish(),
  description: z.string().nullish(),
  trigger: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('keyword'), keywords: triggerWords }),
      z.object({ type: z.literal('task'), triggers: triggerWords }),
      z.object({ type: z.literal('path'), paths: triggerWords }),
    ])
    .nullish(),
  is_agentskills_format: z.boolean().nullish(),
  disable_model_invocation: z.boolean().nullish(),
});

export type GivenSkill = z.infer<typeof givenSkill>;

/** The members of the published `agent.agent_context` that have an effect here. */
export const agentContextSchema = z.looseObject({
  system_message_suffix: z.string().nullish(),
  user_message_suffix: z.string().nullish(),
  skills: z.array(givenSkill).max(500).nullish(),
  disabled_skills: z.array(z.string()).nullish(),
  load_project_skills: z.boolean().nullish(),
  load_user_skills: z.boolean().nullish(),
});

/** Further members are kept and returned, but ignored. */
const agent = z.looseObject({
  kind: z.enum(['Agent', 'ACPAgent']).default('Agent'),
  ...acpMembers,
  llm: z.looseObject({
    ...model,
    input_cost_per_token: z.number().nonnegative().nullish(),
    output_cost_per_token: z.number().nonnegative().nullish(),
    usage_id: z.string().default('agent'),
  }),
  mcp_config: mcpConfigSchema.nullish(),
  condenser: z.looseObject({ kind: z.string(), max_tokens: z.number().int().positive().nullish() }).nullish(),
  agent_context: agentContextSchema.nullish(),
});

const maxBudget = z.number().nonnegative();
const modelPrice = z.object({
  input: z.number(),
  output: z.number(),
  /** Prices of tokens read from and written to the provider's cache; both default to `input`. */
  cache_read: z.number().optional(),
  cache_write: z.number().optional(),
});
const modelPrices = namedValues(z.string(), modelPrice);
const maxIterations = z.number().int().positive();

/** What our agent server accepts beyond the published schema. Budgets in USD, prices in USD per million tokens. */
const extension = z.object({
  max_budget: maxBudget.nullish(),
  language: z.string().nullish(),
  search_api_key: z.string().nullish(),
  tavily_api_url: z.string().nullish(),
  model_prices: modelPrices.optional(),
  /** Never written to disk: see `credentialsSchema`. */
  git: gitAccessSchema.nullish(),
  /** Has the format of OUTBOUND_ALLOWLIST; null allows any server. */
  outbound_allowlist: z.array(z.string()).nullish(),
  /** JSON Schema of the `result` that the agent must pass to `finish`. */
  result_schema: namedValues(z.string(), z.unknown()).nullish(),
});

/** An ACP agent needs no model from us, but it needs the command that starts it. */
const anyAgent = z
  .preprocess(
    (value: z.input<typeof agent>) =>
      isJsonObject(value) && value.kind === 'ACPAgent'
        ? Object.assign({ llm: { model: ACP_MODEL } }, value)
        : value,
    agent,
  )
  .refine(({ kind, acp_command: command }) => kind !== 'ACPAgent' || (command ?? []).length > 0, {
    path: ['acp_command'],
    error: 'An ACP agent needs the command that starts it',
  });

export const tagsSchema = namedValues(
  z.string().regex(/^[a-z0-9]{1,64}$/, 'A key has lower-case letters and digits only'),
  z.string().max(256),
);

export const startSchema = z.object({
  agent: anyAgent,
  workspace: z.object({
    kind: z.literal('LocalWorkspace').default('LocalWorkspace'),
    working_dir: z.string().min(1),
  }),
  /** If it exists already, the existing conversation is returned. */
  conversation_id: conversationIdSchema.nullish(),
  confirmation_policy: confirmationPolicySchema.default({ kind: 'NeverConfirm' }),
  security_analyzer: securityAnalyzerSchema.optional(),
  initial_message: messageSchema.nullish(),
  max_iterations: maxIterations.default(500),
  stuck_detection: z.boolean().default(true),
  secrets: secretsSchema.default({}),
  tags: tagsSchema.nullish(),
  slipway: extension.default({}),
});

export type CreateConversationRequest = z.infer<typeof startSchema>;

export const forkSchema = z
  .object({
    id: conversationIdSchema.nullish(),
    title: z.string().max(200).nullish(),
    tags: tagsSchema.nullish(),
    reset_metrics: z.boolean().default(true),
    from_event_id: z.string().nullish(),
  })
  .default({ reset_metrics: true });

export type ForkRequest = z.infer<typeof forkSchema>;

export const credentialsSchema = z.object({
  /** Tools may have changed the record on disk: after a restart, no model is called until a client names it again. */
  llm_model: z.string().min(1).optional(),
  /** Address of the model; null means the provider's own. */
  llm_base_url: z.string().nullish(),
  llm_api_key: z.string().nullish(),
  /** The user's key is for another server than the conversation's, which still needs a key of its own. */
  llm_key_withheld: z.boolean().optional(),
  /** Kept while the model and its address stay. */
  llm_parameters: z.object(modelParameters).nullish(),
  search_api_key: z.string().nullish(),
  tavily_api_url: z.string().nullish(),
  mcp_config: mcpConfigSchema.nullish(),
  secrets: secretsSchema.optional(),
  git: gitAccessSchema.nullish(),
  /** This member and those below it are stored, and take effect from the next step. */
  max_iterations: maxIterations.optional(),
  max_budget: maxBudget.nullish(),
  /** Part of `max_budget` that conversations started by the agent may spend. */
  delegated_budget: maxBudget.optional(),
  /** Replaces the known prices, because another model comes with its own. */
  model_prices: modelPrices.optional(),
  language: z.string().nullish(),
  outbound_allowlist: z.array(z.string()).nullish(),
  /** The record on disk does not decide how the agent is started. */
  acp: z.object(acpMembers).nullish(),
});

export const switchLlmSchema = z.object({ llm: z.object(model) });

export type ModelPrice = z.infer<typeof modelPrice>;
export type ModelParameters = NonNullable<CredentialsUpdate['llm_parameters']>;
export type CredentialsUpdate = z.infer<typeof credentialsSchema>;

export type ParsedMcpServers = z.infer<typeof mcpServers>;
export type ParsedSecret = z.infer<typeof secretSourceSchema>;
