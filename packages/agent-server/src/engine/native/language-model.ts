import {
  APICallError,
  defaultSettingsMiddleware,
  type LanguageModel,
  type LanguageModelMiddleware,
  wrapLanguageModel,
} from 'ai';
import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import {
  access,
  addressToCheck,
  hostOf,
  isAzure,
  isOpenAi,
  modelEndpoint,
  responsesPlace,
} from '@slipway/common/model-endpoint.js';
import type { EngineSettings } from '../agent-engine.js';
import { answerLimit } from './answer-limits.js';
import { checkedFetch, idleTimeoutFetch, repairingFetch } from './model-fetch.js';
import { RefusedParameters } from './refused-parameters.js';
import { LlmFailure } from './llm-failure.js';
import type { ModelTarget } from './prompt-limits.js';
import { isNoAddress, readRefusal, wantsResponses } from './refusal-words.js';
import { textTools } from './text-tools.js';

export interface ChosenModel {
  languageModel: LanguageModel;
  target: ModelTarget;
}

export type ModelFactory = (settings: EngineSettings) => Promise<ChosenModel>;

/** `cacheKey`: the same for all requests that have a long beginning in common, as those of a conversation have. */
export function modelFactory(anthropicUrl: string, cacheKey: string): ModelFactory {
  const learnt: LearntApis = new Map();
  const shared = { anthropicUrl, cacheKey, refused: new RefusedParameters(), learnt };
  return async ({ llm, llmTimeoutMs: timeoutMs, outboundAllowlist: allowlist }) => {
    const chosen = await languageModel({ ...llm, timeoutMs, allowlist, ...shared });
    return { languageModel: chosen, target: knownEndpoint(llm) };
  };
}

type Endpoint = Exclude<ReturnType<typeof modelEndpoint>, { problem: string }>;
type OpenAiEndpoint = Extract<Endpoint, { api: 'openai' }>;

function knownEndpoint({ model, baseUrl, parameters }: EngineSettings['llm']): Endpoint {
  const endpoint = modelEndpoint(model, baseUrl, parameters?.api ?? null);
  if ('problem' in endpoint) {
    throw notConfigured(endpoint.problem);
  }
  return endpoint;
}

type LanguageModelOptions = EngineSettings['llm'] & {
  timeoutMs: number;
  allowlist: readonly string[] | null;
  /** Base address of Anthropic's own API, which no setting names. */
  anthropicUrl: string;
  cacheKey: string;
  refused?: RefusedParameters;
  learnt?: LearntApis;
};

type OpenAiApi = 'chat' | 'responses';
/** Which API a server wants a model to be asked through, by both. */
type LearntApis = Map<string, OpenAiApi>;

/** Models that have no other API. */
const RESPONSES_ONLY = /(^|\/)(gpt-\d[\d.]*-codex|codex-|(gpt-\d[\d.]*|o\d)-pro|o\d[\w-]*-deep-research)/i;
/** Models that take tools and reason there only, or keep what they have thought there only. */
const RESPONSES_AT_OPENAI = /^(gpt-([5-9]|\d\d)|o[1-9])(?!.*(chat|search))/i;

function firstApi({ model, baseUrl, dialect }: OpenAiEndpoint): OpenAiApi {
  const { host } = new URL(baseUrl);
  const isAtOpenAi = isOpenAi(baseUrl) || isAzure(baseUrl);
  // OpenRouter has an API of one kind for all models.
  const byName =
    host !== OPENROUTER && (RESPONSES_ONLY.test(model) || (isAtOpenAi && RESPONSES_AT_OPENAI.test(model)));
  return dialect ?? (byName ? 'responses' : 'chat');
}

/**
 * The model that the settings configure. Loads only the code for its API, to save time and memory.
 * @throws LlmFailure when a setting is missing or names a server that may not be called
 */
export async function languageModel(options: LanguageModelOptions): Promise<LanguageModel> {
  const { model, apiKey, baseUrl, timeoutMs, allowlist, anthropicUrl, parameters = {} } = options;
  const { refused = new RefusedParameters(), learnt = new Map() } = options;
  const endpoint = knownEndpoint(options);
  const address = addressToCheck(model, baseUrl);
  const problem = address === null ? null : new OutboundAddresses(allowlist).problem(address);
  if (problem !== null) {
    throw notConfigured(`llm_base_url: ${problem}`);
  }
  const unusable = keyProblem(apiKey) ?? parametersProblem(parameters);
  if (unusable !== null) {
    throw notConfigured(unusable);
  }
  // An allowed server could redirect to any other.
  const idle = idleTimeoutFetch(timeoutMs, allowlist === null ? 'follow' : 'error');
  const plain = withBody(idle, parameters.litellm_extra_body);
  const place = endpoint.api === 'openai' ? `${endpoint.baseUrl} ${endpoint.model}` : '';
  const dropped = {
    drops: parameters.drop_params !== false,
    isLimitOurs: endpoint.api === 'openai' && !parameters.max_output_tokens,
    isChatOnly: () => learnt.get(place) === 'chat',
  };
  const isMarked = endpoint.api === 'openai' && CLAUDE.test(endpoint.model);
  const fetch = checkedFetch(refused.dropping(isMarked ? refused.marking(plain) : plain, dropped));
  const headers = parameters.extra_headers ?? {};
  if (endpoint.api === 'anthropic') {
    if (apiKey === null) {
      // The SDK would take a key from the environment instead.
      throw notConfigured('No key for the model: store one in the settings (llm_api_key).');
    }
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    const own = endpoint.baseUrl === null || hostOf(endpoint.baseUrl) === 'api.anthropic.com';
    const anthropic = createAnthropic({
      apiKey,
      baseURL: endpoint.baseUrl ?? anthropicUrl,
      // Gateways take the one or the other.
      headers: own ? headers : { Authorization: `Bearer ${apiKey}`, ...headers },
      fetch,
    });
    const settings = {
      // The SDK knows how much Anthropic's models write, and gives others very little.
      ...(!CLAUDE.test(endpoint.model) && { maxOutputTokens: answerLimit(endpoint.model) }),
      ...settingsOf(parameters),
      ...anthropicSettings(parameters),
    };
    return wrapLanguageModel({
      model: anthropic(endpoint.model),
      middleware: [defaultSettingsMiddleware({ settings }), ...ownMiddleware(parameters)],
    });
  }
  const settings = { maxOutputTokens: answerLimit(endpoint.model), ...settingsOf(parameters) };
  const middleware = [defaultSettingsMiddleware({ settings }), ...ownMiddleware(parameters)];
  const first = firstApi(endpoint);
  const make = async (api: OpenAiApi): Promise<Model> =>
    api === 'chat'
      ? wrapLanguageModel({ model: await chatModel(endpoint, options, fetch), middleware })
      : wrapLanguageModel({
          model: await responsesModel(endpoint, options, fetch),
          middleware: [...middleware, withResponses(endpoint.model, options.cacheKey)],
        });
  return wrapLanguageModel({
    model: await make(first),
    middleware: {
      specificationVersion: 'v4',
      wrapStream: async ({ params }) => {
        for (;;) {
          const api = learnt.get(place) ?? first;
          try {
            return await (await make(api)).doStream(params);
          } catch (error) {
            const other = otherApi(api, error);
            // The second condition holds when each API has pointed to the other one.
            if (other === null || (other === 'responses' && learnt.delete(place))) {
              throw error;
            }
            learnt.set(place, other);
          }
        }
      },
    },
  });
}

function otherApi(api: OpenAiApi, error: unknown): OpenAiApi | null {
  if (!APICallError.isInstance(error)) {
    return null;
  }
  const refusal = readRefusal(error.responseBody ?? '');
  if (api === 'chat') {
    return wantsResponses(refusal) ? 'responses' : null;
  }
  return isNoAddress(error.statusCode ?? 0, refusal) ? 'chat' : null;
}

type Model = ReturnType<typeof wrapLanguageModel>;

async function chatModel(
  endpoint: OpenAiEndpoint,
  { apiKey, cacheKey, parameters = {} }: LanguageModelOptions,
  fetch: typeof globalThis.fetch,
): Promise<Model> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  const { host } = new URL(endpoint.baseUrl);
  const { query, key } = access(endpoint, apiKey, parameters.api_version);
  return createOpenAICompatible({
    name: 'openai',
    baseURL: endpoint.baseUrl,
    ...(Object.keys(query).length > 0 && { queryParams: query }),
    headers: {
      ...key,
      ...(host === OPENROUTER && openRouterHeaders(parameters)),
      ...parameters.extra_headers,
    },
    includeUsage: true,
    // The SDK would otherwise fetch images itself, from inside the sandbox.
    supportedUrls: () => ({ 'image/*': [/^https?:/] }),
    fetch: repairingFetch(fetch),
    transformRequestBody: ({ max_tokens: limit, ...body }) => ({
      ...body,
      // OpenAI's reasoning models refuse the older name, which others know alone.
      [isOpenAi(endpoint.baseUrl) ? 'max_completion_tokens' : 'max_tokens']: limit,
      prompt_cache_key: routesByKey(endpoint.baseUrl) ? cacheKey : undefined,
      top_k: parameters.top_k ?? undefined,
    }),
  }).chatModel(endpoint.model);
}

async function responsesModel(
  endpoint: OpenAiEndpoint,
  { apiKey, parameters = {} }: LanguageModelOptions,
  fetch: typeof globalThis.fetch,
): Promise<Model> {
  // Built from the provider's parts, like Azure's provider, for the sake of addresses and keys.
  const { OpenAIResponsesLanguageModel } = await import('@ai-sdk/openai/internal');
  const { model, baseUrl } = responsesPlace(endpoint);
  const { query, key } = access({ baseUrl, query: endpoint.query }, apiKey, parameters.api_version);
  const search = new URLSearchParams(query).toString();
  const { temperature, top_p } = parameters;
  const given = Object.entries({ temperature, top_p }).filter(([, value]) => typeof value === 'number');
  const isTheirs = isOpenAi(baseUrl) || isAzure(baseUrl) || RESPONSES_ONLY.test(model);
  return new OpenAIResponsesLanguageModel(model, {
    provider: 'openai.responses',
    url: ({ path }) => `${baseUrl}${path}${search && `?${search}`}`,
    headers: () => ({ ...key, ...parameters.extra_headers }),
    // The SDK sends these to no model that reasons; those of others take them.
    fetch: isTheirs ? fetch : withBody(fetch, Object.fromEntries(given)),
  });
}

/**
 * Whether a server finds what it has cached by the key (https://developers.openai.com/api/docs/guides/prompt-caching,
 * https://docs.mistral.ai/studio/conversations/advanced/prompt-caching). NVIDIA's and Azure's Foundry refuse it.
 */
function routesByKey(baseUrl: string): boolean {
  return isOpenAi(baseUrl) || hostOf(baseUrl).endsWith('.mistral.ai');
}

/** Nothing is kept at the server: what the model has thought comes sealed, and goes back with the history. */
function withResponses(model: string, promptCacheKey: string): LanguageModelMiddleware {
  return {
    specificationVersion: 'v4',
    transformParams: async ({ params }) => ({
      ...params,
      prompt: params.prompt.filter(({ role }) => role !== 'system'),
      providerOptions: {
        ...params.providerOptions,
        openai: {
          store: false,
          promptCacheKey,
          instructions: params.prompt
            .flatMap((message) => (message.role === 'system' ? [message.content] : []))
            .join('\n\n'),
          // The SDK knows models by name, and nothing of a deployment's.
          forceReasoning: !NOT_REASONING.test(model),
          reasoningSummary: 'auto',
        },
      },
    }),
  };
}

const NOT_REASONING = /gpt-[34]|chat/i;

const CLAUDE = /claude/i;

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

type Settings = Partial<Parameters<NonNullable<LanguageModelMiddleware['transformParams']>>[0]['params']>;

function settingsOf(parameters: ModelParameters): Settings {
  return {
    temperature: parameters.temperature ?? undefined,
    topP: parameters.top_p ?? undefined,
    seed: parameters.seed ?? undefined,
    ...(parameters.max_output_tokens && { maxOutputTokens: parameters.max_output_tokens }),
    reasoning: EFFORTS.find((effort) => effort === parameters.reasoning_effort),
  };
}

const OPENROUTER = 'openrouter.ai';

function openRouterHeaders({
  openrouter_site_url: site,
  openrouter_app_name: name,
}: ModelParameters): Record<string, string> {
  return { ...(site && { 'HTTP-Referer': printable(site) }), ...(name && { 'X-Title': printable(name) }) };
}

/** Headers allow no other characters. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, '');
}

function ownMiddleware({
  native_tool_calling: isNative,
  disable_stop_word: noStop,
  disable_vision: isBlind,
}: ModelParameters): LanguageModelMiddleware[] {
  return [
    ...(isNative === false ? [textTools({ stop: noStop !== true })] : []),
    ...(isBlind === true ? [withoutImages] : []),
  ];
}

const IMAGE_NOTE = { type: 'text' as const, text: '[An image is left out: disable_vision is set.]' };

const withoutImages: LanguageModelMiddleware = {
  specificationVersion: 'v4',
  transformParams: async ({ params }) => ({
    ...params,
    // Images of results come in messages of the user as well.
    prompt: params.prompt.map((message) =>
      message.role === 'user'
        ? {
            ...message,
            content: message.content.map((part) => (part.type === 'file' ? IMAGE_NOTE : part)),
          }
        : message,
    ),
  }),
};

/** The published SDK sends this with every model, whether its user wants it or not. */
const THINKING_BUDGET_OF_SDK = 200_000;

function anthropicSettings({
  top_k: topK,
  extended_thinking_budget: budgetTokens,
}: ModelParameters): Settings {
  const thinks = Boolean(budgetTokens) && budgetTokens !== THINKING_BUDGET_OF_SDK;
  return {
    topK: topK ?? undefined,
    // A budget of its own takes the place of the reasoning effort.
    ...(thinks && { reasoning: undefined }),
    providerOptions: {
      anthropic: {
        // A run sends its whole history with each step, which costs ten times as much where Anthropic does not keep it.
        cacheControl: { type: 'ephemeral' },
        ...(thinks && { thinking: { type: 'enabled', budgetTokens } }),
      },
    },
  };
}

/** Adds the members of the settings to each request, but for those that are the conversation itself. */
function withBody(
  fetch: typeof globalThis.fetch,
  extra: ModelParameters['litellm_extra_body'],
): typeof fetch {
  const { messages: _, input: __, stream: ___, ...members } = extra ?? {};
  if (Object.keys(members).length === 0) {
    return fetch;
  }
  return async (input, init) => {
    const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : null;
    return await fetch(
      input,
      typeof body === 'object' ? { ...init, body: JSON.stringify({ ...body, ...members }) } : init,
    );
  };
}

/** Some tools show a key with an ellipsis, which then is copied. */
function keyProblem(apiKey: string | null): string | null {
  return /[^\t\n\r\x20-\x7e]/.test(apiKey ?? '')
    ? 'The key of the model (llm_api_key) has characters that no key has. Copy the whole key again.'
    : null;
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
/** They belong to the connection, or would lead to another server than the address names. */
const OWN_HEADERS =
  /^(host|connection|content-(length|type|encoding)|transfer-encoding|te|trailer|upgrade|expect)$/i;

/** Why the parameters cannot be sent, in words for the user; null when they can. */
export function parametersProblem({ extra_headers: headers }: ModelParameters): string | null {
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!HEADER_NAME.test(name) || OWN_HEADERS.test(name)) {
      return `extra_headers: ${JSON.stringify(name)} is not a header that can be set.`;
    }
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      return `extra_headers: the value of ${name} has characters that no header may have.`;
    }
  }
  return null;
}

function notConfigured(reason: string): LlmFailure {
  return new LlmFailure('LlmNotConfigured', reason, null);
}
