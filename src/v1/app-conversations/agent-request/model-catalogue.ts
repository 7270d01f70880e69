import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ascending } from '../../../common/compare.js';
import { AppConfig } from '../../../config/app-config.js';
import type { CatalogueModel, ModelFacts } from './model-catalogue.data.js';
import type { ModelPrice } from './model-prices.file.js';

/** A model that users may choose. */
export interface ListedModel extends Omit<CatalogueModel, 'provider'> {
  /** Null: the operator's list names the model without one. */
  provider: string | null;
}

/** What models cost and how much they can read: by the operator's list of prices, or else by the bundled catalogue. */
@Injectable()
export class ModelCatalogue implements OnModuleInit {
  private prices = new Map<string, ModelPrice>();
  private models: Promise<readonly ListedModel[]> | undefined;

  constructor(private readonly config: AppConfig) {}

  /** @throws ConfigError for an invalid list */
  async onModuleInit(): Promise<void> {
    const { modelPricesFile: file } = this.config.agent;
    if (file !== null) {
      // Imported only where there is a list: the parsers take long to load.
      const { readModelPrices } = await import('./model-prices.file.js');
      this.prices = await readModelPrices(file);
    }
  }

  /** @param name as in the settings; the operator's list may omit its provider */
  async facts(name: string): Promise<ModelFacts> {
    // The catalogue is large, and only starts of conversations need it.
    const { catalogueFacts } = await import('./model-catalogue.data.js');
    const facts = catalogueFacts(name);
    const given = this.prices.get(name) ?? this.prices.get(name.slice(name.indexOf('/') + 1));
    return given ? { ...facts, price: given } : facts;
  }

  /** The models of the catalogue and of the operator's list, by provider and name. */
  async list(): Promise<readonly ListedModel[]> {
    this.models ??= this.readModels();
    return this.models;
  }

  private async readModels(): Promise<readonly ListedModel[]> {
    const { catalogueModels } = await import('./model-catalogue.data.js');
    const models = new Map<string, ListedModel>();
    for (const model of await catalogueModels()) {
      models.set(`${model.provider}/${model.name}`, model);
    }
    for (const fullName of this.prices.keys()) {
      const [, provider = null, name = fullName] = /^([^/]+)\/(.+)$/.exec(fullName) ?? [];
      models.set(fullName, { provider, name, verified: true });
    }
    return [...models].toSorted(([a], [b]) => ascending(a, b)).map(([, model]) => model);
  }
}
