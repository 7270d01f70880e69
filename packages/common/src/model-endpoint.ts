type ModelEndpoint =
  | {
      api: 'openai';
      model: string;
      baseUrl: string;
      query: Record<string, string>;
      /** The user's choice of one of OpenAI's two APIs. */
      dialect?: 'chat' | 'responses';
    }
  /** `baseUrl` includes its version; null means Anthropic's own. */
  | { api: 'anthropic'; model: string; baseUrl: string | null };

/** How a model is asked, where neither its name nor its address says it. */
export type ModelApi = 'anthropic' | 'openai' | 'openai-responses';

const OPENAI_URL = 'https://api.openai.com/v1';
const OPENROUTER_HOST = 'openrouter.ai';

// Prefixes by which LiteLLM names providers with an API like OpenAI's. Null: each customer has an address. `anthropic`
// is missing because servers that offer its models use that prefix themselves.
const PROVIDERS: ReadonlyMap<string, string | null> = new Map([
  ['azure', null],
  ['azure_ai', null],
  ['cerebras', 'https://api.cerebras.ai/v1'],
  ['codestral', 'https://codestral.mistral.ai/v1'],
  ['cohere', 'https://api.cohere.ai/compatibility/v1'],
  ['custom_openai', null],
  ['dashscope', 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1'],
  ['deepinfra', 'https://api.deepinfra.com/v1/openai'],
  ['deepseek', 'https://api.deepseek.com/v1'],
  ['fireworks_ai', 'https://api.fireworks.ai/inference/v1'],
  ['gemini', 'https://generativelanguage.googleapis.com/v1beta/openai'],
  ['groq', 'https://api.groq.com/openai/v1'],
  ['hosted_vllm', null],
  ['huggingface', 'https://router.huggingface.co/v1'],
  ['hyperbolic', 'https://api.hyperbolic.xyz/v1'],
  ['litellm_proxy', null],
  ['llamafile', 'http://127.0.0.1:8080/v1'],
  ['lm_studio', 'http://127.0.0.1:1234/v1'],
  ['minimax', 'https://api.minimax.io/v1'],
  ['mistral', 'https://api.mistral.ai/v1'],
  ['moonshot', 'https://api.moonshot.ai/v1'],
  ['nebius', 'https://api.studio.nebius.ai/v1'],
  ['novita', 'https://api.novita.ai/v3/openai'],
  ['nvidia_nim', 'https://integrate.api.nvidia.com/v1'],
  ['ollama', 'http://127.0.0.1:11434/v1'],
  ['ollama_chat', 'http://127.0.0.1:11434/v1'],
  ['openrouter', 'https://openrouter.ai/api/v1'],
  ['perplexity', 'https://api.perplexity.ai'],
  ['sambanova', 'https://api.sambanova.ai/v1'],
  ['together_ai', 'https://api.together.xyz/v1'],
  ['vercel_ai_gateway', 'https://ai-gateway.vercel.sh/v1'],
  ['volcengine', 'https://ark.cn-beijing.volces.com/api/v3'],
  ['xai', 'https://api.x.ai/v1'],
  ['zai', 'https://api.z.ai/api/paas/v4'],
]);
const OWN_SERVERS: ReadonlySet<string> = new Set([
  'hosted_vllm',
  'llamafile',
  'lm_studio',
  'ollama',
  'ollama_chat',
]);

/** Finds the address of a model. The prefix of a known provider is removed and selects the default address. */
export function modelEndpoint(
  name: string,
  baseUrl: string | null,
  api: ModelApi | null = null,
): ModelEndpoint | { problem: string } {
  const full = name.trim();
  if (full === '') {
    return { problem: 'No model is set: choose one in the settings (llm_model).' };
  }
  const { provider, model: named } = splitName(full, baseUrl);
  const given = (baseUrl ?? '').trim();
  // A prefix of LiteLLM's, or the address that Azure shows for such a model.
  const model = named.replace(/^responses\/(?=.)/, '');
  const asksResponses =
    api === null ? model !== named || /\/responses\/*([?#]|$)/.test(given) : api === 'openai-responses';
  if (api === 'anthropic' || (api === null && speaksAnthropic(provider, given))) {
    return ['', 'anthropic'].includes(provider) || given !== ''
      ? { api: 'anthropic', model, baseUrl: given === '' ? null : anthropicAddress(given) }
      : { problem: withoutAddress(full) };
  }
  const address = given === '' ? defaultAddress(provider, full) : given;
  if (address === null) {
    // The key belongs to that provider and must not be sent to another one.
    return { problem: withoutAddress(full) };
  }
  const isPassedOn = provider === 'anthropic';
  return {
    api: 'openai',
    model: isPassedOn ? full : model,
    ...cleanAddress(address, provider),
    ...(asksResponses ? { dialect: 'responses' } : api === 'openai' && { dialect: 'chat' }),
  };
}

function withoutAddress(name: string): string {
  return `The model ${name} needs the address of its provider: store it in the settings (llm_base_url).`;
}

/** Gateways of Z.ai, Moonshot, MiniMax and DeepSeek offer Anthropic's form at such addresses. */
function speaksAnthropic(provider: string, given: string): boolean {
  return given === ''
    ? provider === 'anthropic'
    : hostOf(given) === 'api.anthropic.com' || /\/anthropic(\/v1)?(\/messages)?\/*$/.test(given);
}

/** Returns the address up to its version, which the path of the request follows. */
function anthropicAddress(given: string): string {
  return `${given
    .replace(/\/+$/, '')
    .replace(/\/messages$/, '')
    .replace(/\/v1$/, '')}/v1`;
}

export function isOwnServer(name: string): boolean {
  return OWN_SERVERS.has(splitName(name.trim(), null).provider);
}

/** The address that the allowlist has to contain; null for OpenAI's or Anthropic's own, which every list allows. */
export function addressToCheck(name: string, baseUrl: string | null): string | null {
  const given = (baseUrl ?? '').trim();
  if (given !== '') {
    return given;
  }
  const endpoint = modelEndpoint(name, null);
  return 'problem' in endpoint || endpoint.api === 'anthropic' || endpoint.baseUrl === OPENAI_URL
    ? null
    : endpoint.baseUrl;
}

function splitName(full: string, baseUrl: string | null): { provider: string; model: string } {
  const [, first = '', rest = ''] = /^([^/]+)\/(.+)$/.exec(full) ?? [];
  const provider = first.toLowerCase();
  const whole = { provider: '', model: full };
  // OpenRouter's own names have the same form, `openrouter/auto` among them.
  const isOneName = !rest.includes('/');
  if (provider === 'openrouter' && isOneName) {
    return { provider, model: full };
  }
  if (isOpenRouter(baseUrl) && (provider !== 'openai' || isOneName)) {
    return provider === 'openrouter' ? { provider, model: rest } : whole;
  }
  return provider === 'openai' || provider === 'anthropic' || PROVIDERS.has(provider)
    ? { provider, model: rest }
    : whole;
}

/** Whether it is OpenAI itself, in whichever region (https://developers.openai.com/api/docs/guides/your-data). */
export function isOpenAi(baseUrl: string): boolean {
  return /(^|\.)api\.openai\.com$/.test(hostOf(baseUrl));
}

export function isAzure(baseUrl: string): boolean {
  return /\.(openai|cognitiveservices|services\.ai)\.azure\.com$/.test(hostOf(baseUrl));
}

function isOpenRouter(baseUrl: string | null): boolean {
  const host = hostOf((baseUrl ?? '').trim());
  return host === OPENROUTER_HOST || host.endsWith(`.${OPENROUTER_HOST}`);
}

/** Empty: it is no address. */
export function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).hostname : '';
}

function defaultAddress(provider: string, name: string): string | null {
  if (provider === 'openai' || (provider === '' && !name.includes('/'))) {
    return OPENAI_URL;
  }
  return PROVIDERS.get(provider) ?? null;
}

/** Removes the path that users copy along with the address, and adds the one that they leave out. */
function cleanAddress(address: string, provider: string): { baseUrl: string; query: Record<string, string> } {
  const [, base = '', search = ''] = /^([^?#]*)\??([^#]*)/.exec(address) ?? [];
  const clean = base.replace(/\/+$/, '').replace(/\/(chat\/completions|responses)$/, '');
  const query = Object.fromEntries(new URLSearchParams(search));
  if (!URL.canParse(clean)) {
    return { baseUrl: clean, query };
  }
  const { host, pathname } = new URL(clean);
  if (isAzure(clean) && pathname === '/') {
    return { baseUrl: `${clean}/openai/v1`, query };
  }
  const usual = new URL(PROVIDERS.get(provider) ?? OPENAI_URL);
  const isKnown = OWN_SERVERS.has(provider) || host === usual.host || isOpenAi(clean);
  return {
    baseUrl: isKnown && pathname === '/' ? `${clean}${usual.pathname}`.replace(/\/+$/, '') : clean,
    query,
  };
}

/** How a server is asked, and with what key. */
export function access(
  { baseUrl, query }: { baseUrl: string; query: Record<string, string> },
  apiKey: string | null,
  version: string | null | undefined,
): { query: Record<string, string>; key: Record<string, string> } {
  const azure = isAzure(baseUrl);
  const { 'api-version': asked = version, ...others } = query;
  // Azure's newer API refuses a version, and its older one a key in the usual header.
  const used = azure && baseUrl.endsWith('/v1') ? undefined : asked;
  const key: Record<string, string> = azure
    ? { 'api-key': apiKey ?? '' }
    : { Authorization: `Bearer ${apiKey}` };
  return { query: { ...(used && { 'api-version': used }), ...others }, key: apiKey === null ? {} : key };
}

/** Returns the address of the Responses API. Azure has one for all deployments, which older addresses name. */
export function responsesPlace({ model, baseUrl }: { model: string; baseUrl: string }): {
  model: string;
  baseUrl: string;
} {
  if (!isAzure(baseUrl)) {
    return { model, baseUrl };
  }
  const { origin, pathname } = new URL(baseUrl);
  const [, deployment] = /^\/openai\/deployments\/([^/]+)/.exec(pathname) ?? [];
  return { model: deployment ?? model, baseUrl: `${origin}/openai/v1` };
}
