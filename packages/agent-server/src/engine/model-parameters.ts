import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { isJsonObject } from '@slipway/common/json-merge.js';

/** How a model is called, beside its name, address and key: members of `llm` in the published schema. */
export interface ModelParameters {
  temperature?: number | null | undefined;
  top_p?: number | null | undefined;
  top_k?: number | null | undefined;
  seed?: number | null | undefined;
  max_output_tokens?: number | null | undefined;
  /** A longer history is condensed. */
  max_input_tokens?: number | null | undefined;
  /** False: tools are called in text. */
  native_tool_calling?: boolean | null | undefined;
  disable_vision?: boolean | null | undefined;
  /** `api-version` of the address, as Azure has it. */
  api_version?: string | null | undefined;
  /** How OpenRouter lists the program that calls. */
  openrouter_site_url?: string | null | undefined;
  openrouter_app_name?: string | null | undefined;
  /** Whether calls in text are sent without a stop sequence, which some servers refuse. */
  disable_stop_word?: boolean | null | undefined;
  extended_thinking_budget?: number | null | undefined;
  /** False: a parameter that the server does not know is an error; otherwise it is left out. */
  drop_params?: boolean | null | undefined;
  reasoning_effort?: string | null | undefined;
  /** Seconds in which the model may send nothing. */
  timeout?: number | null | undefined;
  num_retries?: number | null | undefined;
  retry_multiplier?: number | null | undefined;
  /** Seconds. */
  retry_min_wait?: number | null | undefined;
  retry_max_wait?: number | null | undefined;
  /** May hold secrets. */
  extra_headers?: Record<string, string> | null | undefined;
  /** Members of each request's body; may hold secrets. */
  litellm_extra_body?: Record<string, unknown> | null | undefined;
}

export function parametersOf(llm: ModelParameters): ModelParameters {
  return {
    temperature: llm.temperature,
    top_p: llm.top_p,
    top_k: llm.top_k,
    seed: llm.seed,
    max_output_tokens: llm.max_output_tokens,
    max_input_tokens: llm.max_input_tokens,
    native_tool_calling: llm.native_tool_calling,
    disable_stop_word: llm.disable_stop_word,
    disable_vision: llm.disable_vision,
    api_version: llm.api_version,
    openrouter_site_url: llm.openrouter_site_url,
    openrouter_app_name: llm.openrouter_app_name,
    extended_thinking_budget: llm.extended_thinking_budget,
    drop_params: llm.drop_params,
    reasoning_effort: llm.reasoning_effort,
    timeout: llm.timeout,
    num_retries: llm.num_retries,
    retry_multiplier: llm.retry_multiplier,
    retry_min_wait: llm.retry_min_wait,
    retry_max_wait: llm.retry_max_wait,
    extra_headers: llm.extra_headers,
    litellm_extra_body: llm.litellm_extra_body,
  };
}

/** Headers that carry a key, whatever their value looks like. */
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i;

/** The values to mask. Others name teams, regions or versions, which stand in many texts. */
export function secretParameters({ extra_headers: headers }: ModelParameters): string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) =>
    SECRET_HEADER.test(name) ? [value, value.replace(/^(Bearer|Basic|Token) /i, '')] : [],
  );
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

/** Members of a request that only change how a model answers. */
const OPTIONAL = [
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'stop',
  'stop_sequences',
  'reasoning_effort',
  'thinking',
];
const REFUSED =
  /unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not (?:allowed|permitted|available)|extra (?:field|input)|deprecated|incompatible|only the default|only \S+ is allowed/i;

/** A model that takes no temperature must not end each conversation of a user who has set one (`drop_params`). */
export class RefusedParameters {
  readonly #refused = new Map<string, ReadonlySet<string>>();

  /** Leaves out what was refused before, and repeats a request without what is refused now. */
  dropping(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return async (input, init) => {
      const body = typeof init?.body === 'string' ? parseJson(init.body) : null;
      if (!isJsonObject(body)) {
        return await fetch(input, init);
      }
      const model = jsonText(body, 'model') ?? '';
      for (;;) {
        const refused = this.#refused.get(model) ?? new Set();
        const sent = Object.entries(body).filter(([name]) => !refused.has(name));
        const response = await fetch(input, { ...init, body: JSON.stringify(Object.fromEntries(sent)) });
        if (response.status !== 400 && response.status !== 422) {
          return response;
        }
        const text = await response.text();
        const named = sent
          .map(([name]) => name)
          .filter((name) => OPTIONAL.includes(name) && isRefused(text, name));
        if (named.length === 0) {
          const { status, statusText, headers } = response;
          return new Response(text, { status, statusText, headers });
        }
        this.#refused.set(model, new Set([...refused, ...named]));
      }
    };
  }
}

/** A value that is out of bounds is not a parameter that is unknown. */
function isRefused(text: string, parameter: string): boolean {
  return REFUSED.test(text) && new RegExp(`(?<![a-z_])${parameter}(?![a-z_])`, 'i').test(text);
}
