import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModel } from 'ai';
import { OutboundAddresses } from '../../../common/http/outbound-addresses.js';
import type { EngineSettings } from '../agent-engine.js';
import { idleTimeoutFetch } from './idle-timeout-fetch.js';
import { LlmFailure } from './llm-failure.js';
import { modelTarget } from './model-target.js';

export interface LanguageModelOptions {
  /** The setting `llm_model`. */
  model: string;
  apiKey: string | null;
  baseUrl: string | null;
  /** Silence that counts as a failure, in milliseconds. */
  timeoutMs: number;
  /** Servers that may be called (see `HostAllowlist`); null: any. */
  allowlist: readonly string[] | null;
  /** Base address of Anthropic's own API, which no setting names. */
  anthropicUrl: string;
}

/**
 * The model that the settings name.
 *
 * @throws LlmFailure when a setting is missing, or names a server that may not be called
 */
export function languageModel(options: LanguageModelOptions): LanguageModel {
  const { model, apiKey, baseUrl, timeoutMs, allowlist, anthropicUrl } = options;
  const target = modelTarget(model, baseUrl);
  const problem = baseUrl ? new OutboundAddresses(allowlist).problem(baseUrl.trim()) : null;
  if (problem !== null) {
    throw new LlmFailure('LlmNotConfigured', `llm_base_url: ${problem}`, null);
  }
  // An allowed server could name another one.
  const fetch = idleTimeoutFetch(timeoutMs, allowlist === null ? 'follow' : 'error');
  if (target.api === 'anthropic') {
    if (apiKey === null) {
      // Without one the SDK would look for it in the environment.
      throw new LlmFailure(
        'LlmNotConfigured',
        'No key for the model: give llm_api_key in the settings.',
        null,
      );
    }
    return createAnthropic({ apiKey, baseURL: anthropicUrl, fetch })(target.model);
  }
  return createOpenAICompatible({
    name: 'openai',
    baseURL: target.baseUrl,
    apiKey: apiKey ?? undefined,
    includeUsage: true,
    fetch,
  }).chatModel(target.model);
}

/** The model of a conversation, by its settings as they are now. */
export type ModelOf = (settings: EngineSettings) => LanguageModel;

/** @param anthropicUrl base address of Anthropic's own API */
export function modelsOf(anthropicUrl: string): ModelOf {
  return ({ llm, llmTimeoutMs, outboundAllowlist }) =>
    languageModel({ ...llm, timeoutMs: llmTimeoutMs, allowlist: outboundAllowlist, anthropicUrl });
}
