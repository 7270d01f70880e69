import { isJsonObject } from '@slipway/common/json-merge.js';
import { MAX_ELEMENTS } from '../common/validation/field.js';

/** Most characters of a text among the nested settings; all of them together have a limit of their own. */
export const MAX_MODEL_TEXT = 16_384;

type FieldType = 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';

/** A member of the nested settings that clients offer in their forms. */
export interface SettingField {
  /** Its path, joined with dots. */
  key: string;
  label: string;
  description: string;
  type: FieldType;
  default: unknown;
  prominence: 'critical' | 'major' | 'minor';
  /** Fields that must be switched on for it to take effect. */
  dependsOn: readonly string[];
  /** Stored encrypted and never shown. */
  secret: boolean;
  choices: readonly string[];
  minimum: number | null;
}

type FieldOptions = Partial<Omit<SettingField, 'key' | 'label' | 'description' | 'type'>>;

function field(
  key: string,
  label: string,
  type: FieldType,
  description: string,
  options: FieldOptions = {},
): SettingField {
  return {
    key,
    label,
    description,
    type,
    default: null,
    prominence: 'minor',
    dependsOn: [],
    secret: false,
    choices: [],
    minimum: null,
    ...options,
  };
}

const CRITICAL = { prominence: 'critical' } as const;
const MAJOR = { prominence: 'major' } as const;
const SECRET = { secret: true } as const;

/** Added to the description of parameters that our own agent server does not use. */
const STOCK = 'Used by stock agent servers.';

/** Members of `agent_settings` itself. */
export const GENERAL_FIELDS: readonly SettingField[] = [
  field('agent', 'Agent', 'string', 'Agent of new conversations.', { ...MAJOR, default: 'CodeActAgent' }),
  field('mcp_config', 'MCP servers', 'object', 'Tool servers of the agent, by name.', { default: {} }),
];

/** Members of `agent_settings.llm`, which are those of a stored profile too. */
export const LLM_FIELDS: readonly SettingField[] = [
  field(
    'llm.model',
    'Model',
    'string',
    'Model of new conversations, such as anthropic/claude-sonnet-4-5.',
    CRITICAL,
  ),
  field('llm.api_key', 'API key', 'string', 'Key for the model.', { ...CRITICAL, ...SECRET }),
  field(
    'llm.base_url',
    'Base URL',
    'string',
    "Address of the model's API; none: that of its provider.",
    MAJOR,
  ),
  field('llm.timeout', 'Timeout', 'integer', 'Seconds that a call of the model may take.', { minimum: 1 }),
  field('llm.input_cost_per_token', 'Input cost per token', 'number', 'US dollars.', { minimum: 0 }),
  field('llm.output_cost_per_token', 'Output cost per token', 'number', 'US dollars.', { minimum: 0 }),
  field('llm.temperature', 'Temperature', 'number', 'How freely the model chooses its words.', {
    minimum: 0,
  }),
  field('llm.top_p', 'Top P', 'number', 'Share of the likely words that it chooses from.', { minimum: 0 }),
  field('llm.top_k', 'Top K', 'number', 'Number of the likely words that it chooses from.', { minimum: 0 }),
  field(
    'llm.max_input_tokens',
    'Max input tokens',
    'integer',
    'Most tokens of a request; a longer history is condensed.',
    { minimum: 1 },
  ),
  field(
    'llm.max_output_tokens',
    'Max output tokens',
    'integer',
    'Most tokens of one answer; a longer one is continued.',
    { minimum: 1 },
  ),
  field('llm.reasoning_effort', 'Reasoning effort', 'string', 'How long a reasoning model thinks.', {
    choices: ['low', 'medium', 'high', 'xhigh', 'none'],
  }),
  field('llm.reasoning_summary', 'Reasoning summary', 'string', STOCK, {
    choices: ['auto', 'concise', 'detailed'],
  }),
  field(
    'llm.extended_thinking_budget',
    'Extended thinking budget',
    'integer',
    "Tokens that a model of Anthropic may think, in place of the reasoning effort; none or 200000: the model's default.",
    { minimum: 0 },
  ),
  field('llm.enable_encrypted_reasoning', 'Encrypted reasoning', 'boolean', STOCK),
  field('llm.seed', 'Seed', 'integer', 'Makes answers repeatable where the provider can.'),
  field('llm.stream', 'Stream', 'boolean', STOCK),
  field(
    'llm.num_retries',
    'Retries',
    'integer',
    'How often a call is repeated while the provider is busy; none: for a minute at least.',
    { minimum: 0 },
  ),
  field('llm.retry_multiplier', 'Retry multiplier', 'number', 'Seconds that are doubled with each retry.', {
    minimum: 0,
  }),
  field(
    'llm.retry_min_wait',
    'Shortest wait before a retry',
    'integer',
    'Seconds, unless the provider names a time.',
    { minimum: 0 },
  ),
  field(
    'llm.retry_max_wait',
    'Longest wait before a retry',
    'integer',
    'Seconds, unless the provider names a time.',
    { minimum: 0 },
  ),
  field('llm.max_message_chars', 'Max message characters', 'integer', STOCK, { minimum: 1 }),
  field('llm.model_canonical_name', 'Canonical model name', 'string', STOCK),
  field('llm.extra_headers', 'Extra headers', 'object', 'Headers of every call; values are not shown.'),
  field('llm.litellm_extra_body', 'Extra body', 'object', 'Members of the body of every call.'),
  field('llm.api_version', 'API version', 'string', 'The api-version of the address, as Azure has it.'),
  field('llm.aws_access_key_id', 'AWS access key id', 'string', STOCK, SECRET),
  field('llm.aws_secret_access_key', 'AWS secret access key', 'string', STOCK, SECRET),
  field('llm.aws_session_token', 'AWS session token', 'string', STOCK, SECRET),
  field('llm.aws_region_name', 'AWS region', 'string', STOCK),
  field('llm.aws_profile_name', 'AWS profile', 'string', STOCK),
  field('llm.aws_role_name', 'AWS role', 'string', STOCK),
  field('llm.aws_session_name', 'AWS session', 'string', STOCK),
  field('llm.aws_bedrock_runtime_endpoint', 'AWS Bedrock endpoint', 'string', STOCK),
  field('llm.openrouter_site_url', 'OpenRouter site', 'string', 'Site that OpenRouter lists as the caller.'),
  field(
    'llm.openrouter_app_name',
    'OpenRouter app',
    'string',
    'Program that OpenRouter lists as the caller.',
  ),
  field('llm.ollama_base_url', 'Ollama base URL', 'string', STOCK),
  field(
    'llm.drop_params',
    'Drop unsupported parameters',
    'boolean',
    'Whether parameters that the model refuses are left out from then on; none: they are.',
  ),
  field('llm.modify_params', 'Modify parameters', 'boolean', STOCK),
  field('llm.disable_vision', 'Disable vision', 'boolean', 'Whether images are left out of what is sent.'),
  field(
    'llm.disable_stop_word',
    'Disable stop words',
    'boolean',
    'Whether tools in text are offered without a stop sequence.',
  ),
  field('llm.caching_prompt', 'Cache prompts', 'boolean', STOCK),
  field('llm.prompt_cache_retention', 'Prompt cache retention', 'string', STOCK),
  field('llm.log_completions', 'Log completions', 'boolean', STOCK),
  field('llm.log_completions_folder', 'Folder of logged completions', 'string', STOCK),
  field('llm.custom_tokenizer', 'Tokenizer', 'string', STOCK),
  field(
    'llm.native_tool_calling',
    'Native tool calling',
    'boolean',
    'Off for models without function calling: tools are described and called in text.',
  ),
  field('llm.force_string_serializer', 'Messages as strings', 'boolean', STOCK),
  field('llm.inline_image_urls', 'Inline image addresses', 'boolean', STOCK),
  field('llm.usage_id', 'Usage id', 'string', STOCK),
  field('llm.auth_type', 'Authentication', 'string', 'Keys are the only way here.', { choices: ['api_key'] }),
];

/** What a shown profile has beside its fields, or web applications send besides; it means nothing here. */
export const LLM_ECHOES = ['subscription_vendor', 'is_subscription', 'provider_connection_id'] as const;

export const CONDENSER_FIELDS: readonly SettingField[] = [
  field(
    'condenser.enabled',
    'Condense long histories',
    'boolean',
    'Summarise the oldest part of long histories.',
    {
      ...CRITICAL,
      default: true,
    },
  ),
  field(
    'condenser.max_tokens',
    'Max tokens',
    'integer',
    'Size of a history that is condensed; none: by the model.',
    {
      dependsOn: ['condenser.enabled'],
      minimum: 1,
    },
  ),
  field('condenser.max_size', 'Max events', 'integer', STOCK, {
    dependsOn: ['condenser.enabled'],
    minimum: 20,
  }),
  field('condenser.keep_first', 'Keep first', 'integer', STOCK, {
    dependsOn: ['condenser.enabled'],
    minimum: 0,
  }),
];

export const AGENT_CONTEXT_FIELDS: readonly SettingField[] = [
  field(
    'agent_context.load_memory',
    'Persistent memory',
    'boolean',
    `Keep notes in the workspace, and read them in new conversations. ${STOCK}`,
    { ...MAJOR, default: false },
  ),
];

export const CONVERSATION_FIELDS: readonly SettingField[] = [
  field('max_iterations', 'Max iterations', 'integer', 'Most steps of one run of the agent.', {
    ...MAJOR,
    default: 500,
    minimum: 1,
  }),
];

export const CONFIRMATION_FIELDS: readonly SettingField[] = [
  field('confirmation_mode', 'Confirmation mode', 'boolean', 'Whether risky actions wait for the user.', {
    ...CRITICAL,
    default: false,
  }),
  field('security_analyzer', 'Security analyzer', 'string', 'Judge of the risk of actions.', {
    ...MAJOR,
    dependsOn: ['confirmation_mode'],
    choices: ['llm', 'pattern', 'policy_rail', 'none'],
  }),
];

const FIELDS = new Map(
  [
    ...GENERAL_FIELDS,
    ...LLM_FIELDS,
    ...AGENT_CONTEXT_FIELDS,
    ...CONDENSER_FIELDS,
    ...CONVERSATION_FIELDS,
    ...CONFIRMATION_FIELDS,
  ].map((entry) => [entry.key, entry]),
);

export function findField(path: readonly string[]): SettingField | undefined {
  return FIELDS.get(path.join('.'));
}

/** A field in the words of OpenAPI. */
export function fieldSchema({ type, choices, minimum, description }: SettingField): Record<string, unknown> {
  return {
    type: [type, 'null'],
    description,
    ...(type === 'string' && { maxLength: MAX_MODEL_TEXT }),
    ...(type === 'array' && { maxItems: MAX_ELEMENTS }),
    ...(type === 'object' && { maxProperties: MAX_ELEMENTS }),
    ...(choices.length > 0 && { enum: [...choices, null] }),
    ...(type === 'integer' && { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
    ...(minimum !== null && { minimum }),
  };
}

/** Why a value does not suit a field; null when it does. Type and sentence as in answers of 422. */
export function fieldProblem(
  { type, choices, minimum }: SettingField,
  value: unknown,
): { type: string; msg: string } | null {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') {
        return { type: 'string_type', msg: 'Expected a string.' };
      }
      if (value.length > MAX_MODEL_TEXT) {
        return { type: 'value_error', msg: `Expected at most ${MAX_MODEL_TEXT} characters.` };
      }
      return choices.length === 0 || choices.includes(value)
        ? null
        : { type: 'literal_error', msg: `Expected one of: ${choices.join(', ')}.` };
    case 'boolean':
      return typeof value === 'boolean' ? null : { type: 'bool_type', msg: 'Expected true or false.' };
    case 'integer':
      if (!Number.isSafeInteger(value)) {
        return { type: 'int_type', msg: 'Expected a whole number.' };
      }
      return belowMinimum(value, minimum);
    case 'number':
      return typeof value === 'number'
        ? belowMinimum(value, minimum)
        : { type: 'float_type', msg: 'Expected a number.' };
    case 'array':
      return Array.isArray(value)
        ? elementsProblem(value.length)
        : { type: 'list_type', msg: 'Expected a list.' };
    case 'object':
      return isJsonObject(value)
        ? elementsProblem(Object.keys(value).length)
        : { type: 'dict_type', msg: 'Expected an object.' };
  }
}

function elementsProblem(count: number): { type: string; msg: string } | null {
  return count > MAX_ELEMENTS
    ? { type: 'too_long', msg: `Expected at most ${MAX_ELEMENTS} elements.` }
    : null;
}

function belowMinimum(value: unknown, minimum: number | null): { type: string; msg: string } | null {
  return minimum !== null && typeof value === 'number' && value < minimum
    ? { type: 'greater_than_equal', msg: `Expected at least ${minimum}.` }
    : null;
}

/** Members of other names whose text is a secret all the same. */
const SECRET_NAME = /(?:^|[_-])(?:key|secret|token|password|passphrase|credentials?|authorization|cookie)$/i;
const SECRET_MAPS: ReadonlySet<string> = new Set(['extra_headers', 'headers', 'env', 'secrets']);

/** Whether what stands at a path is a secret: by its field, or else by its name or that of the map it is in. */
export function isSecretPath(path: readonly string[]): boolean {
  const known = findField(path);
  if (known) {
    return known.secret;
  }
  return SECRET_NAME.test(path.at(-1) ?? '') || path.slice(0, -1).some((name) => SECRET_MAPS.has(name));
}
