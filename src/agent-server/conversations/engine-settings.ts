import type { EngineSettings } from '../engine/agent-engine.js';
import type { ConversationRecord } from './conversation-record.js';
import type { Credentials } from './credentials.js';

/** The engine's settings, as record and credentials have them right now. */
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
 * Only the model states risks: without an analyzer they are all unknown. The engine supports no threshold but HIGH, so
 * for any other one the user is asked more often, never less.
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
