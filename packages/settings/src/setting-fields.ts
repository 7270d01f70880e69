import { isJsonObject } from '@slipway/common/json-access.js';
import { MAX_ELEMENTS } from '@slipway/api/validation/field.js';
import { memberSchema, type SettingsColumn } from './settings.schema.js';
import schema from './settings.schema.json' with { type: 'json' };

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
  maximum: number | null;
  /** The member of the flat settings that it is; null: it is stored among the details. */
  flat: SettingsColumn | null;
  /** Our own agent server does not get it. */
  isStock: boolean;
}

/** A field in the words of JSON Schema; type and bounds of a flat member stand with that. */
interface FieldDocument extends Partial<Pick<SettingField, 'default' | 'minimum' | 'maximum'>> {
  title: string;
  description?: string;
  type?: string;
  enum?: readonly string[];
  writeOnly?: boolean;
  'x-flat'?: string;
  'x-stock'?: boolean;
  'x-prominence'?: string;
  'x-depends-on'?: readonly string[];
}

function fieldsOf(properties: Readonly<Record<string, FieldDocument>>, prefix = ''): readonly SettingField[] {
  return Object.entries(properties).map(([name, document]) => {
    const flat = (document['x-flat'] ?? null) as SettingsColumn | null;
    const field: FieldDocument = { ...(flat && boundsOf(flat)), ...document };
    return {
      key: `${prefix}${name}`,
      label: field.title,
      description: field.description ?? 'Used by stock agent servers.',
      type: field.type as SettingField['type'],
      default: field.default ?? null,
      prominence: (field['x-prominence'] ?? 'minor') as SettingField['prominence'],
      dependsOn: field['x-depends-on'] ?? [],
      secret: field.writeOnly ?? false,
      choices: field.enum ?? [],
      minimum: field.minimum ?? null,
      maximum: field.maximum ?? null,
      flat,
      isStock: field['x-stock'] ?? false,
    };
  });
}

function boundsOf(
  name: SettingsColumn,
): Pick<FieldDocument, 'type' | 'minimum' | 'maximum' | 'writeOnly' | 'default'> {
  const { description: _other, examples: _examples, ...bounds } = memberSchema(name);
  return bounds;
}

const { agent_settings: agent, conversation_settings: conversation } = schema.properties;
const { llm, agent_context: context, condenser, ...general } = agent.properties;
const { max_iterations, ...confirmation } = conversation.properties;

/** Members of `agent_settings` itself. */
const GENERAL_FIELDS = fieldsOf(general);
/** Members of `agent_settings.llm`, which are those of a stored profile too. */
export const LLM_FIELDS = fieldsOf(llm.properties, 'llm.');
export const AGENT_CONTEXT_FIELDS = fieldsOf(context.properties, 'agent_context.');
export const CONDENSER_FIELDS = fieldsOf(condenser.properties, 'condenser.');
const CONVERSATION_FIELDS = fieldsOf({ max_iterations });
const CONFIRMATION_FIELDS = fieldsOf(confirmation);

/** What a shown profile has beside its fields, or web applications send besides; it means nothing here. */
export const LLM_ECHOES = ['subscription_vendor', 'is_subscription', 'provider_connection_id'] as const;

const AGENT_FIELDS = [...GENERAL_FIELDS, ...LLM_FIELDS, ...AGENT_CONTEXT_FIELDS, ...CONDENSER_FIELDS];
const FIELDS = new Map(
  [...AGENT_FIELDS, ...CONVERSATION_FIELDS, ...CONFIRMATION_FIELDS].map((entry) => [entry.key, entry]),
);

/** Members that are those of the flat settings, by their path. */
export type FlatFields = ReadonlyMap<string, SettingsColumn>;

function flatOf(fields: readonly SettingField[]): FlatFields {
  return new Map(fields.flatMap(({ key, flat }) => (flat === null ? [] : [[key, flat]])));
}

export const FLAT_AGENT_FIELDS = flatOf(AGENT_FIELDS);
export const FLAT_CONVERSATION_FIELDS = flatOf([...CONVERSATION_FIELDS, ...CONFIRMATION_FIELDS]);

/** Parameters of a model that our own agent server gets. The others may be secret, and it would store them. */
export const OWN_PARAMETERS = LLM_FIELDS.filter(({ flat, isStock }) => flat === null && !isStock).map(
  ({ key }) => key.slice('llm.'.length),
);

export function findField(path: readonly string[]): SettingField | undefined {
  return FIELDS.get(path.join('.'));
}

export function fieldSchema({
  type,
  choices,
  minimum,
  maximum,
  description,
}: SettingField): Record<string, unknown> {
  return {
    type: [type, 'null'],
    description,
    ...(type === 'string' && { maxLength: MAX_MODEL_TEXT }),
    ...(type === 'array' && { maxItems: MAX_ELEMENTS }),
    ...(type === 'object' && { maxProperties: MAX_ELEMENTS }),
    ...(choices.length > 0 && { enum: [...choices, null] }),
    ...(type === 'integer' && { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
    ...(minimum !== null && { minimum }),
    ...(maximum !== null && { maximum }),
  };
}

/** Why a value does not suit a field; null when it does. Type and sentence as in answers of 422. */
export function fieldProblem(
  { type, choices, minimum, maximum }: SettingField,
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
      return rangeProblem(Number(value), minimum, maximum);
    case 'number':
      return typeof value === 'number'
        ? rangeProblem(value, minimum, maximum)
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

function rangeProblem(
  value: number,
  minimum: number | null,
  maximum: number | null,
): { type: string; msg: string } | null {
  if (minimum !== null && value < minimum) {
    return { type: 'greater_than_equal', msg: `Expected at least ${minimum}.` };
  }
  return maximum !== null && value > maximum
    ? { type: 'less_than_equal', msg: `Expected at most ${maximum}.` }
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

interface FieldSchema extends Pick<
  SettingField,
  'key' | 'label' | 'description' | 'default' | 'prominence' | 'secret'
> {
  section: string;
  section_label: string;
  value_type: FieldType;
  depends_on: readonly string[];
  choices: { value: string; label: string }[];
  /** The kind of agent that the field is for; null: every kind. */
  variant: string | null;
}

interface SectionSchema {
  key: string;
  label: string;
  fields: FieldSchema[];
  variant: string | null;
}

/** The settings that clients offer in forms, in the format of OpenHands. */
export interface SettingsSchema {
  model_name: string;
  sections: SectionSchema[];
}

function section(
  key: string,
  label: string,
  variant: string | null,
  fields: readonly SettingField[],
): SectionSchema {
  return {
    key,
    label,
    fields: fields.map(({ key: path, type, dependsOn, choices, ...field }) => ({
      key: path,
      label: field.label,
      description: field.description,
      default: field.default,
      prominence: field.prominence,
      secret: field.secret,
      section: key,
      section_label: label,
      value_type: type,
      depends_on: dependsOn,
      choices: choices.map((value) => ({ value, label: value })),
      variant,
    })),
    variant,
  };
}

export const AGENT_SCHEMA: SettingsSchema = {
  model_name: 'AgentSettings',
  sections: [
    section('general', 'General', 'openhands', GENERAL_FIELDS),
    section('llm', 'LLM', 'openhands', LLM_FIELDS),
    section('agent_context', 'Memory', 'openhands', AGENT_CONTEXT_FIELDS),
    section('condenser', 'Condenser', 'openhands', CONDENSER_FIELDS),
  ],
};

export const CONVERSATION_SCHEMA: SettingsSchema = {
  model_name: 'ConversationSettings',
  sections: [
    section('general', 'General', null, CONVERSATION_FIELDS),
    section('verification', 'Verification', null, CONFIRMATION_FIELDS),
  ],
};
