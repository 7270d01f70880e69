import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModel } from 'ai';
import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import type { EngineSettings } from '../agent-engine.js';
import { idleTimeoutFetch } from './idle-timeout-fetch.js';
import { LlmFailure } from './llm-failure.js';

/** The API that serves a model, and the model's name there. */
type ModelEndpoint = { api: 'openai'; model: string; baseUrl: string } | { api: 'anthropic'; model: string };

const OPENAI_URL = 'https://api.openai.com/v1';

/**
 * `openai/x` and `litellm_proxy/x` mean `x` at the configured address, `anthropic/x` without an address means `x` at
 * Anthropic's own API, and any other name is sent unchanged.
 *
 * @throws LlmFailure when the name has a provider whose address is not configured
 */
export function modelEndpoint(name: string, baseUrl: string | null): ModelEndpoint {
  const model = name.trim();
  if (model === '') {
    throw notConfigured('No model is set: give llm_model in the settings.');
  }
  const [, provider = '', rest = ''] = /^([^/]+)\/(.+)$/.exec(model) ?? [];
  const url = cleanUrl(baseUrl);
  if (provider === 'anthropic' && url === null) {
    return { api: 'anthropic', model: rest };
  }
  if (provider === 'openai') {
    return { api: 'openai', model: rest, baseUrl: url ?? OPENAI_URL };
  }
  if (url !== null) {
    return { api: 'openai', model: provider === 'litellm_proxy' ? rest : model, baseUrl: url };
  }
  if (provider === '') {
    return { api: 'openai', model, baseUrl: OPENAI_URL };
  }
  // The key belongs to that provider and must not be sent to another one.
  throw notConfigured(
    `The model ${model} needs the address of its provider: give llm_base_url in the settings.`,
  );
}

/** Removes the path that people copy along with the address. */
function cleanUrl(url: string | null): string | null {
  const clean = (url ?? '')
    .trim()
    .replace(/\/+$/, '')
    .replace(/\/chat\/completions$/, '');
  return clean === '' ? null : clean;
}

function notConfigured(reason: string): LlmFailure {
  return new LlmFailure('LlmNotConfigured', reason, null);
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
 * The model that the settings configure, with the user's key.
 *
 * @throws LlmFailure when a setting is missing or names a server that may not be called
 */
export function languageModel(options: LanguageModelOptions): LanguageModel {
  const { model, apiKey, baseUrl, timeoutMs, allowlist, anthropicUrl } = options;
  const endpoint = modelEndpoint(model, baseUrl);
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
    return createAnthropic({ apiKey, baseURL: anthropicUrl, fetch })(endpoint.model);
  }
  return createOpenAICompatible({
    name: 'openai',
    baseURL: endpoint.baseUrl,
    apiKey: apiKey ?? undefined,
    includeUsage: true,
    fetch,
  }).chatModel(endpoint.model);
}

/** Creates the model that a conversation's current settings configure. */
export type ModelFactory = (settings: EngineSettings) => LanguageModel;

/** @param anthropicUrl base address of Anthropic's own API */
export function modelFactory(anthropicUrl: string): ModelFactory {
  return ({ llm, llmTimeoutMs, outboundAllowlist }) =>
    languageModel({ ...llm, timeoutMs: llmTimeoutMs, allowlist: outboundAllowlist, anthropicUrl });
}
