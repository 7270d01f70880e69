import { type ConversationRecord, describeSecrets } from './conversation-record.js';
import type { CredentialsUpdate } from './start-schema.js';

/** What of an update is kept on the disk: nothing secret, and only what was given. */
export function recordChanges(
  { llmKeyNeeded, secrets }: Pick<ConversationRecord, 'llmKeyNeeded' | 'secrets'>,
  update: CredentialsUpdate,
): Partial<ConversationRecord> {
  // A key that is withheld is needed as much as before: the model is not called without it.
  const saysNothing = update.llm_api_key === undefined || update.llm_key_withheld === true;
  return {
    llmKeyNeeded: saysNothing ? llmKeyNeeded : Boolean(update.llm_api_key),
    secrets: { ...secrets, ...describeSecrets(update.secrets ?? {}) },
    ...(update.language !== undefined && { language: update.language }),
    ...(update.outbound_allowlist !== undefined && { outboundAllowlist: update.outbound_allowlist }),
    ...(update.max_budget !== undefined && { maxBudget: update.max_budget }),
    ...(update.max_iterations !== undefined && { maxIterations: update.max_iterations }),
  };
}
