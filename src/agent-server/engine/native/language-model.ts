import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModel } from 'ai';
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
}

/**
 * The model that the settings name.
 *
 * @throws LlmFailure when a setting is missing
 */
export function languageModel({ model, apiKey, baseUrl, timeoutMs }: LanguageModelOptions): LanguageModel {
  const target = modelTarget(model, baseUrl);
  const fetch = idleTimeoutFetch(timeoutMs);
  if (target.api === 'anthropic') {
    if (apiKey === null) {
      // Without one the SDK would look for it in the environment.
      throw new LlmFailure(
        'LlmNotConfigured',
        'No key for the model: give llm_api_key in the settings.',
        null,
      );
    }
    return createAnthropic({ apiKey, baseURL: target.baseUrl ?? undefined, fetch })(target.model);
  }
  return createOpenAICompatible({
    name: 'openai',
    baseURL: target.baseUrl,
    apiKey: apiKey ?? undefined,
    includeUsage: true,
    fetch,
  }).chatModel(target.model);
}
