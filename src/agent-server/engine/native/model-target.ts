import { LlmFailure } from './llm-failure.js';

/** Where a model is called, and under which name. */
export type ModelTarget =
  { api: 'openai'; model: string; baseUrl: string } | { api: 'anthropic'; model: string };

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
