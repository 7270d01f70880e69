import type { LanguageModel } from 'ai';
import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import { modelEndpoint } from '../../../common/model-endpoint.js';
import type { EngineSettings } from '../agent-engine.js';
import { idleTimeoutFetch } from './idle-timeout-fetch.js';
import { LlmFailure } from './llm-failure.js';

/** Creates the model that a conversation's current settings configure. */
export type ModelFactory = (settings: EngineSettings) => Promise<LanguageModel>;

/** @param anthropicUrl base address of Anthropic's own API */
export function modelFactory(anthropicUrl: string): ModelFactory {
  return ({ llm, llmTimeoutMs, outboundAllowlist }) =>
    languageModel({ ...llm, timeoutMs: llmTimeoutMs, allowlist: outboundAllowlist, anthropicUrl });
}

interface LanguageModelOptions {
  /** The setting `llm_model`. */
  model: string;
  apiKey: string | null;
  baseUrl: string | null;
  /** How long the model may send nothing. */
  timeoutMs: number;
  /** Servers that may be called (see `HostAllowlist`); null: any. */
  allowlist: readonly string[] | null;
  /** Base address of Anthropic's own API, which no setting names. */
  anthropicUrl: string;
}

/**
 * The model that the settings configure, with the user's key. Only the program for its API is loaded: each takes time and
 * memory in every sandbox.
 *
 * @throws LlmFailure when a setting is missing or names a server that may not be called
 */
export async function languageModel(options: LanguageModelOptions): Promise<LanguageModel> {
  const { model, apiKey, baseUrl, timeoutMs, allowlist, anthropicUrl } = options;
  const endpoint = modelEndpoint(model, baseUrl);
  if ('problem' in endpoint) {
    throw notConfigured(endpoint.problem);
  }
  const problem = baseUrl ? new OutboundAddresses(allowlist).problem(baseUrl.trim()) : null;
  if (problem !== null) {
    throw notConfigured(`llm_base_url: ${problem}`);
  }
  // An allowed server could redirect to any other.
  const fetch = idleTimeoutFetch(timeoutMs, allowlist === null ? 'follow' : 'error');
  if (endpoint.api === 'anthropic') {
    if (apiKey === null) {
      // Without a key, the SDK would take one from the environment.
      throw notConfigured('No key for the model: give llm_api_key in the settings.');
    }
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return createAnthropic({ apiKey, baseURL: anthropicUrl, fetch })(endpoint.model);
  }
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return createOpenAICompatible({
    name: 'openai',
    baseURL: endpoint.baseUrl,
    apiKey: apiKey ?? undefined,
    includeUsage: true,
    fetch,
  }).chatModel(endpoint.model);
}

function notConfigured(reason: string): LlmFailure {
  return new LlmFailure('LlmNotConfigured', reason, null);
}
