import { isJsonObject, type JsonObject, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { withCacheMarks } from './cache-marks.js';
import { withBody } from './model-fetch.js';
import {
  affordableTokens,
  isLimitRefused,
  isRefused,
  isUnreadable,
  readRefusal,
  wantsResponses,
} from './refusal-words.js';
import { sealsIn, withoutSeals } from './sealed-thoughts.js';

/** Members of a request, and of the agent's messages in it, without which a model answers as well. */
const OPTIONAL = new Set(
  [
    'temperature top_p top_k seed stop stop_sequences reasoning_effort thinking stream stream_options max_tokens',
    'max_output_tokens include prompt_cache_key tool_choice',
    // Some servers need these back.
    'reasoning reasoning.effort reasoning.summary reasoning_content reasoning_details reasoning_opaque',
    'thinking_blocks provider_specific_fields',
  ].flatMap((names) => names.split(' ')),
);

/** All names of the limit on an answer's tokens. */
const LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
/** Stands for them among what was refused. */
const ANY_LIMIT = 'limit';
/** Tokens. An answer that has to be shorter is of no use. */
const LEAST_LIMIT = 1_000;

export interface DropOptions {
  /** False: what is refused is an error. */
  drops: boolean;
  /** Whether the length of the answer is limited by us: the model, or its context, may hold less. */
  isLimitOurs: boolean;
  /** Whether the model is offered by no other API, to which a refusal may point. */
  isChatOnly: () => boolean;
}

/** A model that takes no temperature must not end each conversation of a user who has set one (`drop_params`). */
export class RefusedParameters {
  readonly #refused = new Map<string, ReadonlySet<string>>();

  /** Seals by another account, provider or machine behind an address: each refuses the whole request. */
  readonly #unreadable = new Set<string>();

  /** Whether a model's server takes marks of what it shall cache, by the name of the model. */
  readonly #takesMarks = new Map<string, boolean>();

  /** Marks what the server shall cache, until it refuses a request that it accepts without marks. */
  marking(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return async (input, init) => {
      const body = typeof init?.body === 'string' ? parseJson(init.body) : null;
      const model = jsonText(body, 'model') ?? '';
      const known = this.#takesMarks.get(model);
      if (!isJsonObject(body) || !Array.isArray(body['messages']) || known === false) {
        return await fetch(input, init);
      }
      const marked = await fetch(input, { ...init, body: JSON.stringify(withCacheMarks(body)) });
      const isRefusal = marked.status === 400 || marked.status === 422;
      if (known === true || !isRefusal) {
        if (marked.ok) {
          this.#takesMarks.set(model, true);
        }
        return marked;
      }
      await marked.body?.cancel();
      const plain = await fetch(input, init);
      if (plain.ok) {
        this.#takesMarks.set(model, false);
      }
      return plain;
    };
  }

  /** Leaves out what was refused before, and repeats a request without what is refused now. */
  dropping(
    fetch: typeof globalThis.fetch,
    { drops, isLimitOurs, isChatOnly }: DropOptions,
  ): typeof globalThis.fetch {
    return async (input, init) => {
      const body = typeof init?.body === 'string' ? parseJson(init.body) : null;
      if (!isJsonObject(body)) {
        return await fetch(input, init);
      }
      const model = jsonText(body, 'model') ?? '';
      // Tokens that the credit at a gateway is enough for now.
      let affordable: number | undefined;
      for (;;) {
        const refused = this.#refused.get(model) ?? new Set();
        const readable: JsonObject = Object(withoutSeals(body, this.#unreadable));
        const asked = JSON.stringify(without(readable, refused, affordable));
        const response = await fetch(input, { ...init, body: asked });
        if (![400, 402, 422].includes(response.status)) {
          return response;
        }
        const text = await response.text();
        const refusal = readRefusal(text);
        const sent: JsonObject = Object(parseJson(asked));
        const seals = isUnreadable(refusal) ? sealsIn(sent) : [];
        if (seals.length > 0) {
          seals.forEach((seal) => this.#unreadable.add(seal));
          continue;
        }
        const most = response.status === 402 && isLimitOurs ? affordableTokens(refusal) : 0;
        if (most >= LEAST_LIMIT && most < (affordable ?? Infinity)) {
          affordable = most;
          continue;
        }
        if (response.status === 402) {
          return withBody(response, text);
        }
        const isElsewhere = 'messages' in body && !isChatOnly() && wantsResponses(refusal);
        const all = drops && !isElsewhere ? membersOf(sent).filter((name) => isRefused(text, name)) : [];
        const named = all.filter((name) => !all.some((other) => other.startsWith(`${name}.`)));
        const isLimit = isLimitOurs && LIMITS.some((name) => name in sent) && isLimitRefused(refusal);
        if (named.length === 0 && isLimit) {
          this.#refused.set(model, new Set([...refused, ANY_LIMIT]));
          continue;
        }
        if (named.length === 0) {
          return withBody(response, text);
        }
        // The first of two that exclude each other stays.
        const dropped = /\bboth\b/i.test(text) ? named.slice(-1) : named;
        const options = dropped.includes('stream') ? ['stream_options'] : [];
        this.#refused.set(model, new Set([...refused, ...dropped, ...options]));
      }
    };
  }
}

function without(body: JsonObject, refused: ReadonlySet<string>, affordable?: number): JsonObject {
  const kept = (object: JsonObject, path = ''): JsonObject =>
    Object.fromEntries(Object.entries(object).filter(([name]) => !refused.has(path + name)));
  const { max_tokens: limit, messages, input, reasoning } = body;
  return {
    ...kept(body),
    ...(Array.isArray(messages) && {
      messages: messages.map((message: unknown) => (isJsonObject(message) ? kept(message) : message)),
    }),
    ...(Array.isArray(input) && {
      // An item with its id would have to be followed by the one that followed it at the server.
      input: jsonList(body, 'input').map((item) => {
        const { id: _, ...rest } = isJsonObject(item) ? item : {};
        return rest;
      }),
    }),
    ...(isJsonObject(reasoning) && !refused.has('reasoning') && { reasoning: kept(reasoning, 'reasoning.') }),
    // The newer name of the same.
    ...(refused.has('max_tokens') && limit !== undefined && { max_completion_tokens: limit }),
    ...(refused.has(ANY_LIMIT) && Object.fromEntries(LIMITS.map((name) => [name, undefined]))),
    ...(affordable !== undefined &&
      Object.fromEntries(LIMITS.filter((name) => name in body).map((name) => [name, affordable]))),
  };
}

function membersOf(body: JsonObject): string[] {
  const { reasoning } = body;
  const all = [body, ...jsonList(body, 'messages')].flatMap((object) => Object.keys(Object(object)));
  const nested = isJsonObject(reasoning) ? Object.keys(reasoning).map((name) => `reasoning.${name}`) : [];
  return [...new Set([...all, ...nested])].filter((name) => OPTIONAL.has(name));
}
