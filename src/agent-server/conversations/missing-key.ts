import type { ConversationRecord } from './conversation-record.js';

/** Code of the event about a conversation that does not go on for want of its key. */
export const KEY_WITHHELD = 'LlmKeyWithheld';

/**
 * Why a conversation whose model wants a key has none, and what to do, for its user.
 *
 * @param isWithheld whoever gives credentials has a key, but for another server
 */
export function missingKeyDetail(
  { id, llm }: Pick<ConversationRecord, 'id' | 'llm'>,
  isWithheld: boolean,
): string {
  return isWithheld
    ? `The settings name another model server than this conversation's (${llm.model}${place(llm.baseUrl)}), so their ` +
        'key is not sent there. Name that server in the settings again (llm_model, llm_base_url, llm_api_key) and ' +
        'send a message, or start another conversation.'
    : `The LLM key is not kept over a restart: give it again with POST /api/conversations/${id}/credentials.`;
}

/** The server alone: the rest of an address may be secret. */
function place(baseUrl: string | null): string {
  const text = baseUrl?.trim() ?? '';
  return URL.canParse(text) ? ` at ${new URL(text).origin}` : '';
}
