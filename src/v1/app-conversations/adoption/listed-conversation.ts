import { parseHexId } from '../../../common/identifiers.js';
import { jsonText } from '../../../common/json-access.js';
import { storableText, toInstant } from '../../events/store/storable-event.js';
import { MAX_TITLE_LENGTH } from '../conversation.entity.js';

const MAX_MODEL_LENGTH = 500;
const MAX_ADDRESS_LENGTH = 2_000;
const MAX_PATH_LENGTH = 4_096;

/** A conversation as the list of its agent server shows it: a stranger's word, cut to what a row can hold. */
export interface ListedConversation {
  /** UUID with dashes. */
  id: string;
  title: string | null;
  model: string | null;
  /** `acp`: its agent is a program that speaks the Agent Client Protocol; null: it is an OpenHands agent. */
  agentKind: 'acp' | null;
  /** Where the model is called; empty: at its provider's own address. */
  baseUrl: string;
  workingDir: string;
  createdAt: Date;
}

/**
 * Reads an entry of the list.
 *
 * @param now stands in for a time that is missing or in the future
 * @returns null when it is none, or when it is about to be removed
 */
export function toListedConversation(value: unknown, now: Date): ListedConversation | null {
  const id = parseHexId(jsonText(value, 'id') ?? '');
  if (id === null || jsonText(value, 'execution_status') === 'deleting') {
    return null;
  }
  const text = (limit: number, ...path: string[]): string | null => {
    const found = jsonText(value, ...path)?.trim() ?? '';
    return found === '' || found.length > limit ? null : storableText(found);
  };
  const isAcp = jsonText(value, 'agent', 'kind') === 'ACPAgent';
  const created = toInstant(jsonText(value, 'created_at') ?? '');
  const createdAt = created === null ? now : new Date(created);
  return {
    id,
    title: text(MAX_TITLE_LENGTH, 'title'),
    // What an agent of others has for an LLM only stands for the model that it chooses itself.
    model: isAcp
      ? text(MAX_MODEL_LENGTH, 'agent', 'acp_model')
      : text(MAX_MODEL_LENGTH, 'agent', 'llm', 'model'),
    agentKind: isAcp ? 'acp' : null,
    baseUrl: (isAcp ? null : text(MAX_ADDRESS_LENGTH, 'agent', 'llm', 'base_url')) ?? '',
    workingDir: text(MAX_PATH_LENGTH, 'workspace', 'working_dir') ?? '.',
    createdAt: createdAt < now ? createdAt : now,
  };
}
