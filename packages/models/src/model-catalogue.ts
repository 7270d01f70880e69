import { readFile } from 'node:fs/promises';
import type * as genaiPrices from '@pydantic/genai-prices';
import { z } from 'zod';
import { modelEndpoint } from '@slipway/common/model-endpoint.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { ascending } from '@slipway/common/compare.js';
import { parseConfigured, readConfigured } from '@slipway/common/errors/config.error.js';

export interface ModelFacts {
  price: ModelPrice | null;
  /** Tokens. */
  contextWindow: number | null;
}

interface CatalogueModel {
  provider: string;
  name: string;
  /** A chat model that our agent server reaches by its name alone. */
  verified: boolean;
}

export interface ListedModel extends Omit<CatalogueModel, 'provider'> {
  /** Null when the operator's list names no provider. */
  provider: string | null;
}

/** Prices and context windows from the operator's list, or else from the bundled catalogue. */
export class ModelCatalogue {
  private prices = new Map<string, ModelPrice>();
  private models: Promise<readonly ListedModel[]> | undefined;

  /** Reads the operator's list, which a variable names. @throws ConfigError */
  async readPrices(variable: string, file: string): Promise<void> {
    this.prices = await readModelPrices(variable, file);
  }

  /** @param name as in the settings; the operator's list may omit its provider */
  async facts(name: string): Promise<ModelFacts> {
    const facts = catalogueFacts(await loadCatalogue(), name);
    const given = this.prices.get(name) ?? this.prices.get(name.slice(name.indexOf('/') + 1));
    return given ? { ...facts, price: given } : facts;
  }

  /** Models of the catalogue and of the operator's list, by provider and name. */
  async list(): Promise<readonly ListedModel[]> {
    this.models ??= this.readModels();
    return this.models;
  }

  /** As the settings take them. */
  async verifiedNames(): Promise<string[]> {
    const verified = (await this.list()).filter((model) => model.verified);
    const names = verified.map(({ name, provider }) => (provider === null ? name : `${provider}/${name}`));
    return [...new Set(names)].toSorted();
  }

  private async readModels(): Promise<readonly ListedModel[]> {
    const models = new Map<string, ListedModel>();
    for (const model of await catalogueModels(await loadCatalogue())) {
      models.set(`${model.provider}/${model.name}`, model);
    }
    for (const fullName of this.prices.keys()) {
      const [, provider = null, name = fullName] = /^([^/]+)\/(.+)$/.exec(fullName) ?? [];
      models.set(fullName, { provider, name, verified: true });
    }
    return [...models].toSorted(([a], [b]) => ascending(a, b)).map(([, model]) => model);
  }
}

const usd = z.number().nonnegative();
const modelPrice = z.strictObject({
  input: usd,
  output: usd,
  cache_read: usd.optional(),
  cache_write: usd.optional(),
});
/** USD per million tokens; agent servers take the same. */
type ModelPrice = z.infer<typeof modelPrice>;
const pricesSchema = namedValues(z.string().min(1), modelPrice);

/** Reads model names to USD per million tokens. @throws ConfigError */
export async function readModelPrices(variable: string, file: string): Promise<Map<string, ModelPrice>> {
  const prices = await readConfigured(variable, file, async () =>
    parseConfigured(await readFile(file, 'utf8'), pricesSchema),
  );
  return new Map(Object.entries(prices));
}

/** Loaded late because the catalogue is large. */
async function loadCatalogue(): Promise<typeof genaiPrices> {
  return import('@pydantic/genai-prices');
}

/** LiteLLM's names that the catalogue does not know as others of its own. */
const CATALOGUE_IDS: ReadonlyMap<string, string> = new Map([
  ['fireworks_ai', 'fireworks'],
  ['together_ai', 'together'],
]);

/** Small enough for the first tier: prices do not depend on the usage here. */
const ANY_USAGE = { input_tokens: 1, output_tokens: 1 };

/** Takes names as in the settings: `gpt-4o`, `anthropic/claude-…`, `litellm_proxy/gpt-4o`. */
export function catalogueFacts({ calcPrice }: typeof genaiPrices, name: string): ModelFacts {
  const found = candidates(name)
    .map(({ model, provider }) =>
      calcPrice(
        ANY_USAGE,
        model,
        provider === null ? {} : { providerId: CATALOGUE_IDS.get(provider) ?? provider },
      ),
    )
    .find((result) => result !== null);
  if (!found) {
    return { price: null, contextWindow: null };
  }
  const { model_price: price } = found;
  const input = base(price['input_mtok']);
  const output = base(price['output_mtok']);
  const cached = { cache_read: base(price['cache_read_mtok']), cache_write: base(price['cache_write_mtok']) };
  return {
    price: input === undefined || output === undefined ? null : { input, output, ...cached },
    contextWindow: found.model.context_window ?? null,
  };
}

/** The model at its provider, the whole name, then the rest of the name at any provider. */
function candidates(name: string): { model: string; provider: string | null }[] {
  const slash = name.indexOf('/');
  const whole = { model: name, provider: null };
  if (slash <= 0) {
    return [whole];
  }
  const rest = name.slice(slash + 1);
  return [{ model: rest, provider: name.slice(0, slash) }, whole, ...candidates(rest)];
}

function base(price: number | { base: number } | undefined): number | undefined {
  return typeof price === 'object' ? price.base : price;
}

/** Providers whose names differ from LiteLLM's, which the settings use. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ['google', 'gemini'],
  ['moonshotai', 'moonshot'],
  ['together', 'together_ai'],
  ['x-ai', 'xai'],
]);
/** Google sells models of other vendors outside of the Gemini API, and Fireworks has longer names for all. */
const NOT_BY_NAME = /^gemini\/(?!gem)|^fireworks/;
const NO_AGENT = /embed|[-/](tts|image|ocr|guard|safeguard|audio|realtime|transcribe|computer-use)\b/;

/** Whether our agent server reaches a model by its name alone, and can work with it. */
function isKnownByName(name: string): boolean {
  return !('problem' in modelEndpoint(name, null)) && !NOT_BY_NAME.test(name) && !NO_AGENT.test(name);
}

/** The catalogue is never fetched from elsewhere. */
async function catalogueModels(catalogue: typeof genaiPrices): Promise<CatalogueModel[]> {
  const providers = (await catalogue.waitForUpdate()) ?? [];
  return providers.flatMap(({ id, models }) => {
    const provider = PREFIXES.get(id) ?? id;
    return models
      .filter(({ deprecated }) => deprecated !== true)
      .map(({ id: name, context_window: contextWindow }) => ({
        provider,
        name,
        // Embeddings, pictures and speech have no window and no output price in the catalogue.
        verified:
          isKnownByName(`${provider}/${name}`) &&
          contextWindow !== undefined &&
          catalogueFacts(catalogue, `${provider}/${name}`).price !== null,
      }));
  });
}
