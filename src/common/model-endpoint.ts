/** The API that serves a model, and the model's name there. */
type ModelEndpoint = { api: 'openai'; model: string; baseUrl: string } | { api: 'anthropic'; model: string };

const OPENAI_URL = 'https://api.openai.com/v1';

/**
 * Where our agent server calls a model: `openai/x` and `litellm_proxy/x` mean `x` at the configured address,
 * `anthropic/x` without an address means `x` at Anthropic's own API, and any other name is sent unchanged.
 *
 * @param name the setting `llm_model`
 * @param baseUrl the setting `llm_base_url`
 * @returns `problem`: a sentence for the user that names the missing setting
 */
export function modelEndpoint(name: string, baseUrl: string | null): ModelEndpoint | { problem: string } {
  const model = name.trim();
  if (model === '') {
    return { problem: 'No model is set: give llm_model in the settings.' };
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
  return {
    problem: `The model ${model} needs the address of its provider: give llm_base_url in the settings.`,
  };
}

/** Removes the path that people copy along with the address. */
function cleanUrl(url: string | null): string | null {
  const clean = (url ?? '')
    .trim()
    .replace(/\/+$/, '')
    .replace(/\/chat\/completions$/, '');
  return clean === '' ? null : clean;
}
