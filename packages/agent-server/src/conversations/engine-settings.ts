import { textHead } from '@slipway/common/well-formed-text.js';
import type { ParsedSecret } from '@slipway/agent-protocol/conversation-schemas.js';
import type { EngineSettings } from '../engine/agent-engine.js';
import { type Skill, skillsPrompt } from '../skills/skill.js';
import type { ConversationRecord } from './conversation-record.js';
import type { Credentials } from './credentials.js';

const DEFAULT_TAVILY_URL = 'https://api.tavily.com';

/** Secrets, and addresses that they are sent to, come from the credentials alone. @throws Error without a model */
export function toEngineSettings(
  record: ConversationRecord,
  credentials: Credentials,
  skills: readonly Skill[],
): EngineSettings {
  const { llmParameters: parameters } = credentials;
  const model =
    credentials.model ?? (record.kind === 'acp' ? { name: record.llm.model, baseUrl: null } : null);
  if (model === null) {
    throw new Error('the conversation has no credentials yet');
  }
  return {
    llm: { model: model.name, apiKey: credentials.llmApiKey, baseUrl: model.baseUrl, parameters },
    llmTimeoutMs: parameters.timeout ? parameters.timeout * 1000 : record.llm.timeoutMs,
    maxIterations: record.maxIterations,
    maxBudget:
      record.maxBudget === null ? null : Math.max(0, record.maxBudget - (record.delegatedBudget ?? 0)),
    ...toConfirmationPolicy(record),
    // A null limit means that the history is never condensed, whatever the model takes.
    condenserTokens:
      record.condenserTokens && Math.min(record.condenserTokens, parameters.max_input_tokens ?? Infinity),
    language: record.language,
    mcpConfig: credentials.mcpServers,
    searchApiKey: credentials.searchApiKey,
    tavilyApiUrl: credentials.tavilyApiUrl ?? DEFAULT_TAVILY_URL,
    workingDir: record.workingDir,
    // The client's text comes last, because it takes precedence over the repository's.
    systemPromptSuffix:
      [skillsPrompt(skills, model.name), secretsPrompt(credentials.secrets), record.systemPromptSuffix]
        .filter(Boolean)
        .join('\n\n') || null,
    modelPrices: record.modelPrices,
    stuckDetection: record.stuckDetection,
    resultSchema: record.resultSchema ?? null,
    outboundAllowlist: credentials.outboundAllowlist,
    acp: credentials.acp,
  };
}

/** All risks are unknown if there is no analyzer. */
export function toConfirmationPolicy({
  confirmationPolicy: policy,
  securityAnalyzer: analyzer,
}: Pick<ConversationRecord, 'confirmationPolicy' | 'securityAnalyzer'>): Pick<
  EngineSettings,
  'confirmationPolicy' | 'risk'
> {
  if (policy.kind !== 'ConfirmRisky') {
    return { confirmationPolicy: policy.kind === 'AlwaysConfirm' ? 'always' : 'never' };
  }
  const { threshold, confirm_unknown: confirmUnknown } = policy;
  if (analyzer === null) {
    return { confirmationPolicy: confirmUnknown ? 'always' : 'never' };
  }
  return threshold === 'UNKNOWN'
    ? { confirmationPolicy: 'always' }
    : { confirmationPolicy: 'risky', risk: { analyzer, threshold, confirmUnknown } };
}

const MAX_LISTED = 200;
const MAX_DESCRIPTION = 300;

function secretsPrompt(secrets: Readonly<Record<string, ParsedSecret>>): string | null {
  // Sorted, so that giving the same secrets again does not change the prompt.
  const given = Object.entries(secrets)
    .filter(([, secret]) => secret.kind === 'LookupSecret' || secret.value !== null)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  if (given.length === 0) {
    return null;
  }
  const entries = given.slice(0, MAX_LISTED).map(([name, secret]) => `- $${name}${descriptionOf(secret)}`);
  const more = given.length > MAX_LISTED ? [`- and ${given.length - MAX_LISTED} more`] : [];
  return [
    '<SECRETS>',
    'The user has given you these secrets, each as an environment variable. Where a task needs one, use the variable; never print its value.',
    ...entries,
    ...more,
    '</SECRETS>',
  ].join('\n');
}

function descriptionOf(secret: ParsedSecret): string {
  const description = 'description' in secret ? secret.description : null;
  const line = (description ?? '').replaceAll(/[\s<>]+/g, ' ').trim();
  return line === '' ? '' : `: ${textHead(line, MAX_DESCRIPTION)}`;
}
