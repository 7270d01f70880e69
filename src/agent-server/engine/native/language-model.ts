import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModel } from 'ai';
import { OutboundAddresses } from '../../../common/http/host-allowlist.js';
import type { EngineSettings } from '../agent-engine.js';
import { idleTimeoutFetch, LlmFailure } from './llm-failure.js';

/** Where a model is called, and under which name. */
type ModelTarget = { api: 'openai'; model: string; baseUrl: string } | { api: 'anthropic'; model: string };

const OPENAI_URL = 'https://api.openai.com/v1';

/**
 * `openai/x` and `litellm_proxy/x` are `x` at the given address, `anthropic/x` without an address is `x` at
 * Anthropic's own API, any other name is sent as it is.
 *
 * @throws LlmFailure when the name says a provider whose address nobody gave
 */
export function modelTarget(name: string, baseUrl: string | null): ModelTarget {
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
  // The key is for that provider: it is not sent to another one.
  throw notConfigured(
    `The model ${model} needs the address of its provider: give llm_base_url in the settings.`,
  );
}

/** Without the end that people copy along with it. */
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
