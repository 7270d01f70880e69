/** Providers whose address needs not be given. */
const KNOWN = ['openai', 'anthropic'];

/**
 * What is missing to call a model, as a sentence that names the setting; null when nothing is.
 *
 * @param isOurs our agent server: the stock one knows the addresses of many providers itself
 */
export function modelTargetProblem(
  model: string | null,
  baseUrl: string | null,
  apiKey: string | null,
  isOurs: boolean,
): string | null {
  if (model === null || model.trim() === '') {
    return 'No model is set: give llm_model in the settings, or in the request.';
  }
  const hasAddress = baseUrl !== null && baseUrl.trim() !== '';
  if (hasAddress) {
    // A model server of one's own may want no key.
    return null;
  }
  const [, provider = null] = /^([^/]+)\/./.exec(model.trim()) ?? [];
  if (isOurs && provider !== null && !KNOWN.includes(provider)) {
    return `The model ${model} needs the address of its provider: give llm_base_url in the settings.`;
  }
  return apiKey === null || apiKey === ''
    ? `No key is set for the model ${model}: give llm_api_key in the settings.`
    : null;
}
