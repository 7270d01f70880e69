import { MAX_READABLE, MAX_READABLE_LENGTH } from '@slipway/egress-rules/readable-repositories.js';
import { MAX_WRITTEN_RULES } from '@slipway/egress-rules/egress-rules.js';
import { CLONE_FILTERS, MAX_CLONE_DEPTH } from '@slipway/common/clone-part.js';

/** One member of the flat settings, in the words of JSON Schema where it has them. */
export interface MemberSchema {
  /** `array`: of texts. */
  type: 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array';
  description: string;
  /** The first is shown with requests, the last with responses. */
  examples: readonly (string | number | boolean | object)[];
  /** Of an array, and of each text of it. */
  maxItems?: number;
  enum?: readonly string[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  /** An absolute http or https address without credentials. */
  format?: 'uri';
  /** The value of users who never set it, which null does not clear; without it, null is the default. */
  default?: boolean;
  /** Encrypted in a column of its own; shown as null and as `<name>_set`. */
  writeOnly?: true;
  /** Null means "unchanged": forms of clients never get the keys and send null for them. */
  nullKeeps?: true;
  /** Blank text clears it, since null keeps it. */
  blankClears?: true;
  /** Blank text keeps it when a form sends back what it was shown: responses show a blank, whatever is stored. */
  formKeeps?: true;
  /** Agents read it. */
  agents?: true;
}

const KEPT = 'null keeps the stored value, blank text clears it.';
const KEY_KEPT = 'null and the mask `**********` keep the stored key, blank text clears it.';
const MODEL_PART = { type: 'string', nullKeeps: true, blankClears: true, agents: true } as const;
const KEY = { type: 'string', writeOnly: true, nullKeeps: true, blankClears: true } as const;

/**
 * Every member of the flat settings, in the order of the API document. Request, response, stored document, what agents
 * get follow from it. Tool servers, tokens and custom secrets have tables of their own.
 */
export const SETTINGS = {
  language: {
    type: 'string',
    description: 'Language of the user interface.',
    examples: ['en'],
    agents: true,
  },
  agent: {
    type: 'string',
    description: 'Agent that works in new conversations.',
    examples: ['CodeActAgent'],
    agents: true,
  },
  max_iterations: {
    type: 'integer',
    minimum: 1,
    description: 'Most steps of one run of the agent.',
    examples: [100],
    agents: true,
  },
  security_analyzer: {
    type: 'string',
    description: 'Judge of the risk of actions.',
    examples: ['llm'],
    agents: true,
  },
  confirmation_mode: {
    type: 'boolean',
    description: 'Whether risky actions wait for the user.',
    examples: [false],
    agents: true,
  },
  llm_model: {
    ...MODEL_PART,
    description: `Model of new conversations. ${KEPT}`,
    examples: ['provider/model-1'],
  },
  llm_api_key: {
    ...KEY,
    description: `Key for the model. ${KEY_KEPT}`,
    examples: ['llm-key-example'],
    agents: true,
  },
  llm_base_url: {
    ...MODEL_PART,
    format: 'uri',
    description: `Absolute http or https address of the model's API, without credentials in it. ${KEPT}`,
    examples: ['https://llm.example.com/v1'],
  },
  remote_runtime_resource_factor: {
    type: 'integer',
    minimum: 1,
    maximum: 8,
    description: 'Size of sandboxes, as a multiple of the smallest.',
    examples: [1],
  },
  secrets_store: { type: 'elsewhere' },
  enable_default_condenser: {
    type: 'boolean',
    default: true,
    description: 'Whether long histories are condensed.',
    examples: [true],
    agents: true,
  },
  enable_sound_notifications: {
    type: 'boolean',
    default: false,
    description: 'Whether the user interface plays sounds.',
    examples: [false],
  },
  enable_proactive_conversation_starters: {
    type: 'boolean',
    default: true,
    description: 'Whether conversations are offered unasked.',
    examples: [true],
  },
  enable_solvability_analysis: {
    type: 'boolean',
    default: true,
    description: 'Whether issues are judged for how solvable they are.',
    examples: [true],
  },
  user_consents_to_analytics: {
    type: 'boolean',
    nullKeeps: true,
    description: 'Whether the user agreed to analytics. null keeps the stored value.',
    examples: [false],
  },
  sandbox_base_container_image: {
    type: 'string',
    description: 'Image that sandboxes run where `sandbox_runtime_container_image` names none.',
    examples: ['docker.io/library/debian:13'],
  },
  sandbox_runtime_container_image: {
    type: 'string',
    description: 'Image that sandboxes run. One without an agent server gets that of the service.',
    examples: ['registry.example.com/sandbox:1'],
  },
  mcp_config: { type: 'elsewhere' },
  search_api_key: {
    ...KEY,
    formKeeps: true,
    description: `Key for web search. ${KEY_KEPT} Beside provider_tokens_set, blank text keeps it too.`,
    examples: ['search-key-example'],
    agents: true,
  },
  sandbox_api_key: {
    ...KEY,
    description: `Key for a remote sandbox service; stored, but no sandbox of this service needs it. ${KEY_KEPT}`,
    examples: ['sandbox-key-example'],
  },
  max_budget_per_task: {
    type: 'number',
    minimum: 0,
    description: 'Most that one task may cost, in US dollars.',
    examples: [2.5],
    agents: true,
  },
  email: {
    type: 'string',
    maxLength: 320,
    description: 'Email address of the user.',
    examples: ['ada@example.com'],
  },
  email_verified: { type: 'boolean', description: 'Whether the address is confirmed.', examples: [true] },
  git_user_name: {
    type: 'string',
    maxLength: 255,
    description: 'Author name of commits.',
    examples: ['Ada Lovelace'],
    agents: true,
  },
  git_user_email: {
    type: 'string',
    maxLength: 320,
    description: 'Author address of commits.',
    examples: ['ada@example.com'],
    agents: true,
  },
  fork: {
    type: 'string',
    enum: ['auto', 'never'],
    description: 'Whether a fork of yours is made and pushed to where you may not push; null: `auto`.',
    examples: ['auto', 'never'],
    agents: true,
  },
  clone_depth: {
    type: 'integer',
    minimum: 1,
    maximum: MAX_CLONE_DEPTH,
    description: 'How many commits of each branch are cloned; null: all of them.',
    examples: [50],
    agents: true,
  },
  clone_filter: {
    type: 'string',
    enum: CLONE_FILTERS,
    description:
      'What a clone leaves out until git asks for it: files of older commits (`blob:none`), or their folders too (`tree:0`); null: nothing. Hosts without partial clones send everything.',
    examples: ['blob:none'],
    agents: true,
  },
  sandbox_egress: {
    type: 'object',
    maxLength: MAX_WRITTEN_RULES,
    description:
      'What your sandboxes may reach, by name: `default` (`deny`, unless it says `allow`), `allow` (hosts, `*.host` for those below, hosts with `methods` and `paths`, and lists such as `npm`), `deny`, and `setup`, which holds in their place until the agent begins. The rules of the operator and of a start hold besides. For sandboxes that are made from then on, where later changes count within seconds; null: no rules.',
    examples: [{ allow: ['npm', 'api.example.com'], setup: { default: 'allow' } }],
  },
  repositories_read: {
    type: 'array',
    maxItems: MAX_READABLE,
    maxLength: MAX_READABLE_LENGTH,
    description:
      'Other repositories that your sandboxes may read (clone, archives, files, packages), and never push to, where credentials stay outside of them: `github:owner/name`, `github:owner/*`, `gitlab:group/*`. A start may say others; null: none.',
    examples: [['github:octo/*']],
  },
} as const satisfies Record<string, MemberSchema | { type: 'elsewhere' }>;

type SettingsTable = typeof SETTINGS;
type MemberWith<Trait> = {
  [Name in keyof SettingsTable]: SettingsTable[Name] extends Trait ? Name : never;
}[keyof SettingsTable];

/** Members whose values are kept among the settings: all but those that have tables of their own. */
export type SettingsColumn = MemberWith<MemberSchema>;
export type SettingsKeyColumn = MemberWith<{ writeOnly: true }>;
export type PlainColumn = Exclude<SettingsColumn, SettingsKeyColumn>;
export type AgentColumn = Exclude<MemberWith<{ agents: true }>, SettingsKeyColumn>;
type SwitchColumn = MemberWith<{ default: boolean }>;

interface Types {
  array: string[];
  object: object;
  string: string;
  integer: number;
  number: number;
  boolean: boolean;
}
type ValueOf<Name extends SettingsColumn> = SettingsTable[Name] extends { enum: readonly (infer Choice)[] }
  ? Choice
  : Types[SettingsTable[Name]['type']];

/** What is stored of a user: keys are encrypted. */
export type SettingsValues = { [Name in Exclude<SettingsColumn, SwitchColumn>]: ValueOf<Name> | null } & {
  [Name in SwitchColumn]: ValueOf<Name>;
};

/** Members by their names, but for keys; those that were never set, or were cleared, are absent. */
export type SettingsDocument = Partial<Pick<SettingsValues, PlainColumn>>;

export const SETTINGS_COLUMNS = Object.keys(SETTINGS).filter(
  (name): name is SettingsColumn => SETTINGS[name as keyof SettingsTable].type !== 'elsewhere',
);
export const SETTINGS_KEY_COLUMNS = SETTINGS_COLUMNS.filter(isKeyColumn);
export const AGENT_COLUMNS = SETTINGS_COLUMNS.filter(
  (name): name is AgentColumn => memberSchema(name).agents === true && !isKeyColumn(name),
);

export function memberSchema(name: SettingsColumn): MemberSchema {
  return SETTINGS[name];
}

export function isKeyColumn(name: SettingsColumn): name is SettingsKeyColumn {
  return 'writeOnly' in SETTINGS[name];
}
