import type { EngineSettings } from '../engine/agent-engine.js';
import type { ConversationRecord } from './conversation-record.js';
import type { Credentials } from './credentials.js';

/** What the engine works with at this moment. */
export function toEngineSettings(record: ConversationRecord, credentials: Credentials): EngineSettings {
  return {
    llm: { model: record.llm.model, apiKey: credentials.llmApiKey, baseUrl: record.llm.baseUrl },
    llmTimeoutMs: record.llm.timeoutMs,
    maxIterations: record.maxIterations,
    maxBudget: record.maxBudget,
    confirmationPolicy: toConfirmationPolicy(record),
    condenserTokens: record.condenserTokens,
    language: record.language,
    mcpConfig: credentials.mcpServers,
    searchApiKey: credentials.searchApiKey,
    tavilyApiUrl: record.tavilyApiUrl,
    workingDir: record.workingDir,
    systemPromptSuffix: record.systemPromptSuffix,
    modelPrices: record.modelPrices,
    stuckDetection: record.stuckDetection,
    outboundAllowlist: record.outboundAllowlist,
  };
}

/**
 * Risks are known only when the model states them; without an analyzer each one is unknown. A threshold other than
 * HIGH is not offered by the engine, so it is met by asking more often, never less.
 */
export function toConfirmationPolicy(
  record: Pick<ConversationRecord, 'confirmationPolicy' | 'securityAnalyzer'>,
): EngineSettings['confirmationPolicy'] {
  const { confirmationPolicy: policy, securityAnalyzer } = record;
  if (policy.kind !== 'ConfirmRisky') {
    return policy.kind === 'AlwaysConfirm' ? 'always' : 'never';
  }
  if (securityAnalyzer === null) {
    return policy.confirm_unknown ? 'always' : 'never';
  }
  return policy.threshold === 'HIGH' ? 'risky' : 'always';
}
