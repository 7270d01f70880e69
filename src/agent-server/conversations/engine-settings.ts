import type { EngineSettings } from '../engine/agent-engine.js';
import type { Skill } from '../skills/skill.js';
import { skillsPrompt } from '../skills/skills-prompt.js';
import type { ConversationRecord } from './conversation-record.js';
import type { Credentials } from './credentials.js';

const DEFAULT_TAVILY_URL = 'https://api.tavily.com';

/**
 * The engine's settings, as record and credentials have them right now. Every secret in them, and every address that one
 * is sent to, comes from the credentials.
 *
 * @throws Error when nobody has named the model since the server's start; callers refuse to run before
 */
export function toEngineSettings(
  record: ConversationRecord,
  credentials: Credentials,
  skills: readonly Skill[],
): EngineSettings {
  const model =
    credentials.model ?? (record.kind === 'acp' ? { name: record.llm.model, baseUrl: null } : null);
  if (model === null) {
    throw new Error('the conversation has no credentials yet');
  }
  return {
    llm: { model: model.name, apiKey: credentials.llmApiKey, baseUrl: model.baseUrl },
    llmTimeoutMs: record.llm.timeoutMs,
    maxIterations: record.maxIterations,
    maxBudget: record.maxBudget,
    confirmationPolicy: toConfirmationPolicy(record),
    condenserTokens: record.condenserTokens,
    language: record.language,
    mcpConfig: credentials.mcpServers,
    searchApiKey: credentials.searchApiKey,
    tavilyApiUrl: credentials.tavilyApiUrl ?? DEFAULT_TAVILY_URL,
    workingDir: record.workingDir,
    systemPromptSuffix: systemPromptSuffix(record, skillsPrompt(skills, model.name)),
    modelPrices: record.modelPrices,
    stuckDetection: record.stuckDetection,
    resultSchema: record.resultSchema ?? null,
    outboundAllowlist: credentials.outboundAllowlist,
    acp: credentials.acp,
  };
}

/**
 * Only the model states risks: without an analyzer they are all unknown. The engine supports no threshold but HIGH, so
 * with any other threshold the user is asked more often, never less often.
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

/** The client's text comes last, because it takes precedence over the repository's. */
function systemPromptSuffix(
  { systemPromptSuffix: own }: ConversationRecord,
  skills: string | null,
): string | null {
  return [skills, own].filter(Boolean).join('\n\n') || null;
}
