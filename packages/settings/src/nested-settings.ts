import { isDeepStrictEqual } from 'node:util';
import {
  isJsonObject,
  type JsonObject,
  mapLeaves,
  mergePatch,
  without,
} from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { requireNone, type InputProblem } from '@slipway/api/errors/problem-error.js';
import { unmasked } from '@slipway/api/validation/masked-secrets.js';
import { memberSchema, SETTINGS, type SettingsColumn } from './settings.schema.js';
import type { SettingsRow } from './settings-row.js';
import {
  AGENT_CONTEXT_FIELDS,
  CONDENSER_FIELDS,
  fieldProblem,
  findField,
  FLAT_AGENT_FIELDS,
  FLAT_CONVERSATION_FIELDS,
  type FlatFields,
  isSecretPath,
  LLM_FIELDS,
  type SettingField,
} from './setting-fields.js';

/** Members of the nested settings that have no column. Contains keys: never log them, and mask them in responses. */
export interface SettingsDetails {
  /** All members but `agent`, `condenser.enabled` and the model with its key and address. */
  agent: JsonObject;
  conversation: JsonObject;
  /** Preferences of user interfaces. */
  app: JsonObject;
}

export const NO_DETAILS: SettingsDetails = { agent: {}, conversation: {}, app: {} };

/** What a request changes: members of the flat settings by their names, and the rest. */
interface NestedChange {
  flat: Readonly<Record<string, unknown>>;
  details: SettingsDetails;
  /** Absent: unchanged. */
  mcpConfig?: unknown;
}

/** Agents that speak the Agent Client Protocol are named so in the flat settings. */
const ACP = 'acp:';
const DEFAULT_ACP_SERVER = 'claude-code';
const NATIVE_AGENT = 'CodeActAgent';
/** `llm` is what older clients call the native one. */
const AGENT_KINDS: readonly unknown[] = ['openhands', 'llm', 'acp'];

/** Groups of `agent_settings` that lie over those of the layer below, member by member. */
const LAYERED_GROUPS = ['agent_context', 'condenser'] as const;

/** The details over those of the layer below, as far as they lie over each other. */
export function detailsOver(own: SettingsDetails, { agent: below }: SettingsDetails): SettingsDetails {
  const groups = LAYERED_GROUPS.map((name) => [
    name,
    { ...objectAt(below, name), ...objectAt(own.agent, name) },
  ]);
  return { ...own, agent: { ...own.agent, ...Object.fromEntries(groups) } };
}

/** Members of `agent_settings` that have fields of their own. */
const GROUPS: readonly string[] = ['llm', 'agent_context', 'condenser'];

const MAX_DETAILS_BYTES = 64 * 1024;

/**
 * A diff without what its sender was shown: forms send that back, and it is no choice of theirs. A model is left as it is, since
 * with a key or an address beside it the one that was shown is the sender's own.
 */
export function withoutEchoes(diff: JsonObject, shown: JsonObject): JsonObject {
  const { llm, ...rest } = diff;
  return { ...changedMembers(rest, shown), ...(llm !== undefined && { llm }) };
}

function changedMembers(diff: JsonObject, shown: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(diff).flatMap(([name, value]) => {
      const known = Object.hasOwn(shown, name) ? shown[name] : undefined;
      if (!isJsonObject(value) || !isJsonObject(known)) {
        return isDeepStrictEqual(value, known) ? [] : [[name, value]];
      }
      const rest = changedMembers(value, known);
      return Object.keys(rest).length === 0 ? [] : [[name, rest]];
    }),
  );
}

/**
 * Reads the diffs of a request. Like the peer's they are merge patches: objects are merged, null returns a member to its
 * default. A key is kept by null and by the mask, and cleared by blank text, as in the flat settings.
 * @throws InvalidInputError for values that do not suit their fields
 */
export function readNestedChange(
  agentDiff: JsonObject,
  conversationDiff: JsonObject,
  app: JsonObject,
): NestedChange {
  const problems = [
    ...fieldProblems(agentDiff, ['body', 'agent_settings_diff']),
    ...fieldProblems(conversationDiff, ['body', 'conversation_settings_diff']),
  ];
  const { agent_kind: kind } = agentDiff;
  if (kind !== undefined && kind !== null && !AGENT_KINDS.includes(kind)) {
    problems.push({
      loc: ['body', 'agent_settings_diff', 'agent_kind'],
      msg: 'Expected one of: openhands, acp.',
      type: 'literal_error',
    });
  }
  requireNone(problems);
  const agent = splitColumns(agentDiff, FLAT_AGENT_FIELDS);
  const conversation = splitColumns(conversationDiff, FLAT_CONVERSATION_FIELDS);
  return {
    flat: { ...agent.flat, ...chosenAgent(agentDiff), ...conversation.flat },
    details: {
      agent: without(agent.rest, ['agent_kind', 'acp_server', 'schema_version', 'mcp_config']),
      conversation: without(conversation.rest, ['schema_version']),
      app,
    },
    ...(Object.hasOwn(agentDiff, 'mcp_config') && { mcpConfig: agentDiff['mcp_config'] }),
  };
}

/** The flat `agent`, as far as the kind of agent decides it. */
function chosenAgent({ agent_kind: kind, acp_server: server, agent }: JsonObject): { agent?: string } {
  if (kind === 'acp' || ((kind === undefined || kind === null) && typeof server === 'string')) {
    return { agent: `${ACP}${typeof server === 'string' ? server : DEFAULT_ACP_SERVER}` };
  }
  return kind === 'openhands' || kind === 'llm'
    ? { agent: typeof agent === 'string' && !agent.startsWith(ACP) ? agent : NATIVE_AGENT }
    : {};
}

function fieldProblems(
  value: JsonObject,
  loc: readonly string[],
  path: readonly string[] = [],
): InputProblem[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const at = [...path, name];
    const known = findField(at);
    if (known && member !== null) {
      const problem = fieldProblem(known, member);
      return problem ? [{ loc: [...loc, name], ...problem }] : [];
    }
    const isGroup = at.length === 1 && GROUPS.includes(name);
    if (isGroup && member !== null && !isJsonObject(member)) {
      return [{ loc: [...loc, name], msg: 'Expected an object.', type: 'dict_type' }];
    }
    return isJsonObject(member) ? fieldProblems(member, [...loc, name], at) : [];
  });
}

function splitColumns(
  diff: JsonObject,
  columns: FlatFields,
): { flat: Record<string, unknown>; rest: JsonObject } {
  const flat: Record<string, unknown> = {};
  const take = (object: JsonObject, prefix: string): JsonObject =>
    Object.fromEntries(
      Object.entries(object).flatMap(([name, value]) => {
        const column = columns.get(prefix + name);
        if (column !== undefined) {
          Object.assign(flat, flatValue(column, value));
          return [];
        }
        return prefix === '' && isJsonObject(value) ? [[name, take(value, `${name}.`)]] : [[name, value]];
      }),
    );
  return { rest: take(diff, ''), flat };
}

/** A value of a diff as the flat settings take it: there null keeps a model and its address, and blank text clears them. */
function flatValue(column: SettingsColumn, value: unknown): Record<string, unknown> {
  const { default: preset, writeOnly, blankClears } = memberSchema(column);
  if (writeOnly && (value === null || value === MASK)) {
    return {};
  }
  if (column === 'security_analyzer') {
    // Blank, because null would select the default.
    return { [column]: value === 'none' ? '' : value };
  }
  if (value !== null) {
    return { [column]: blankClears && typeof value === 'string' ? value.trim() : value };
  }
  return { [column]: preset ?? (blankClears ? '' : null) };
}

export function changesDetails({ details }: NestedChange): boolean {
  return Object.values(details).some((part: JsonObject) => Object.keys(part).length > 0);
}

/**
 * Merges the changes of a request into the stored details; masks keep the stored values.
 * @throws InvalidInputError for masks without a stored value, and when the details become too large
 */
export function mergeDetails(stored: SettingsDetails, change: SettingsDetails): SettingsDetails {
  const problems: InputProblem[] = [];
  const merge = (member: keyof SettingsDetails, loc: readonly string[]): JsonObject => {
    const patch = unmasked(change[member], stored[member], loc, problems, isSecretPath);
    return mergePatch(stored[member], patch);
  };
  const merged = {
    agent: merge('agent', ['body', 'agent_settings_diff']),
    conversation: merge('conversation', ['body', 'conversation_settings_diff']),
    app: merge('app', ['body']),
  };
  if (JSON.stringify(merged).length > MAX_DETAILS_BYTES) {
    problems.push({
      loc: ['body'],
      msg: `Expected at most ${MAX_DETAILS_BYTES / 1024} KiB of settings in all; remove some first.`,
      type: 'value_error',
    });
  }
  requireNone(problems);
  return merged;
}

/** How deep names are compared: `agent.llm.temperature`. */
const PATH_DEPTH = 3;

export function changedPaths(before: unknown, after: unknown, path: readonly string[] = []): string[] {
  if (isDeepStrictEqual(before ?? {}, after ?? {})) {
    return [];
  }
  const [old, now] = [before, after].map((value) => (isJsonObject(value) ? value : {}));
  const names = path.length < PATH_DEPTH ? Object.keys({ ...old, ...now }) : [];
  return names.length === 0
    ? [path.join('.')]
    : names.flatMap((name) => changedPaths(old?.[name], now?.[name], [...path, name]));
}

/** A tree as responses show it. */
export function masked(tree: JsonObject): JsonObject {
  const copy = mapLeaves(tree, (path, leaf) =>
    typeof leaf === 'string' && leaf !== '' && isSecretPath(path) ? MASK : leaf,
  );
  return isJsonObject(copy) ? copy : {};
}

export function shownAgentSettings(
  row: SettingsRow,
  { agent: details }: SettingsDetails,
  mcpServers: JsonObject,
): JsonObject {
  const shown = masked(details);
  const { agent } = row;
  const isAcp = agent?.startsWith(ACP) === true;
  return {
    schema_version: 4,
    ...shown,
    agent_kind: isAcp ? 'acp' : 'openhands',
    ...(isAcp ? { acp_server: agent.slice(ACP.length) } : { agent: agent ?? NATIVE_AGENT }),
    llm: shownLlm(objectAt(shown, 'llm'), row.llm_model, row.llm_base_url),
    agent_context: { ...defaultsOf(AGENT_CONTEXT_FIELDS), ...objectAt(shown, 'agent_context') },
    condenser: {
      ...defaultsOf(CONDENSER_FIELDS),
      ...objectAt(shown, 'condenser'),
      enabled: row.enable_default_condenser ?? SETTINGS.enable_default_condenser.default,
    },
    mcp_config: mcpServers,
  };
}

/** A model with all its members; keys are never shown. */
export function shownLlm(details: JsonObject, model: unknown, baseUrl: unknown): JsonObject {
  return {
    ...defaultsOf(LLM_FIELDS),
    ...details,
    model,
    api_key: null,
    base_url: baseUrl === '' ? null : baseUrl,
  };
}

export function shownConversationSettings(row: SettingsRow, { conversation }: SettingsDetails): JsonObject {
  return {
    schema_version: 1,
    ...masked(conversation),
    max_iterations: row.max_iterations ?? findField(['max_iterations'])?.default,
    confirmation_mode: row.confirmation_mode ?? false,
    security_analyzer: row.security_analyzer === '' ? 'none' : row.security_analyzer,
  };
}

function defaultsOf(fields: readonly SettingField[]): JsonObject {
  return Object.fromEntries(
    fields.map(({ key, default: initial }) => [key.slice(key.indexOf('.') + 1), initial]),
  );
}

function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isJsonObject(value) ? value : {};
}
