import { calcPrice, waitForUpdate } from '@pydantic/genai-prices';
import type { ModelPrice } from './model-prices.file.js';

/** What the catalogue knows of a model. */
export interface ModelFacts {
  /** Null: unknown. */
  price: ModelPrice | null;
  /** Tokens; null: unknown. */
  contextWindow: number | null;
}

/** Too little to leave the first tier: prices do not depend on the usage here. */
const ANY_USAGE = { input_tokens: 1, output_tokens: 1 };

/**
 * What the bundled catalogue knows of a model.
 *
 * @param name as in the settings: `gpt-4o`, `anthropic/claude-…`, `litellm_proxy/gpt-4o`
 */
export function catalogueFacts(name: string): ModelFacts {
  const found = candidates(name)
    .map(({ model, provider }) =>
      calcPrice(ANY_USAGE, model, provider === null ? {} : { providerId: provider }),
    )
    .find((result) => result !== null);
  if (!found) {
    return { price: null, contextWindow: null };
  }
  const input = base(found.model_price['input_mtok']);
  const output = base(found.model_price['output_mtok']);
  return {
    price: input === null || output === null ? null : { input, output },
    contextWindow: found.model.context_window ?? null,
  };
}

/** The model at its provider, the name as a whole, then the rest of the name, whoever sells it. */
function candidates(name: string): { model: string; provider: string | null }[] {
  const slash = name.indexOf('/');
  const whole = { model: name, provider: null };
  if (slash <= 0) {
    return [whole];
  }
  const rest = name.slice(slash + 1);
  return [{ model: rest, provider: name.slice(0, slash) }, whole, ...candidates(rest)];
}

function base(price: number | { base: number } | undefined): number | null {
  if (price === undefined) {
    return null;
  }
  return typeof price === 'number' ? price : price.base;
}

/** A model that the catalogue lists, as clients let users choose it. */
export interface CatalogueModel {
  provider: string;
  name: string;
  /** A chat model of a provider that our agent server reaches by the name alone. */
  verified: boolean;
}

/** Providers whose models need no address, see `modelEndpoint`. */
const KNOWN_BY_NAME: ReadonlySet<string> = new Set(['anthropic', 'openai']);

/** The bundled catalogue; it is never fetched from elsewhere. */
export async function catalogueModels(): Promise<CatalogueModel[]> {
  const providers = (await waitForUpdate()) ?? [];
  return providers.flatMap(({ id: provider, models }) =>
    models
      .filter(({ deprecated }) => deprecated !== true)
      .map(({ id: name, context_window: contextWindow }) => ({
        provider,
        name,
        // Embeddings, pictures and speech have no window there, and no price of output.
        verified:
          KNOWN_BY_NAME.has(provider) &&
          contextWindow !== undefined &&
          catalogueFacts(`${provider}/${name}`).price !== null,
      })),
  );
}
