import {
  AGENT_CONTEXT_FIELDS,
  CONDENSER_FIELDS,
  CONFIRMATION_FIELDS,
  CONVERSATION_FIELDS,
  GENERAL_FIELDS,
  LLM_FIELDS,
  type SettingField,
} from './setting-fields.js';

/** Describes one member of the nested settings, for clients that build forms from it. */
interface FieldSchema {
  key: string;
  label: string;
  description: string;
  section: string;
  section_label: string;
  value_type: SettingField['type'];
  default: unknown;
  prominence: SettingField['prominence'];
  depends_on: readonly string[];
  secret: boolean;
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
    fields: fields.map((entry) => ({
      key: entry.key,
      label: entry.label,
      description: entry.description,
      section: key,
      section_label: label,
      value_type: entry.type,
      default: entry.default,
      prominence: entry.prominence,
      depends_on: entry.dependsOn,
      secret: entry.secret,
      choices: entry.choices.map((value) => ({ value, label: value })),
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
