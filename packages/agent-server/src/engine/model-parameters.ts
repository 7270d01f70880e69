import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { isJsonObject } from '@slipway/common/json-merge.js';

/** The other members of `llm` have no effect as parameters; the key is kept elsewhere. */
export function parametersOf(
  llm: ModelParameters & { api_key?: string | null | undefined },
): ModelParameters {
  const { api_key: _, ...parameters } = llm;
  return parameters;
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
