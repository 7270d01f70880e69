import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AppConfig } from '../../../config/app-config.js';

/** What a model costs, USD per million tokens. */
export interface ModelPrice {
  input: number;
  output: number;
}

/** What is known of a model beside its name. */
export interface ModelFacts {
  /** Null: nobody knows. */
  price: ModelPrice | null;
  /** Tokens; null: nobody knows. */
  contextWindow: number | null;
}

/** What models cost and how much they can read: the operator's list first, then the catalogue of the installation. */
@Injectable()
export class ModelCatalogue implements OnModuleInit {
  private prices = new Map<string, ModelPrice>();

  constructor(private readonly config: AppConfig) {}

  /** @throws ConfigError for an operator's list that cannot be used */
  async onModuleInit(): Promise<void> {
    const { modelPricesFile: file } = this.config.agent;
    if (file !== null) {
      // Only where there is one: the parsers take long to load.
      const { readModelPrices } = await import('./model-prices.file.js');
      this.prices = await readModelPrices(file);
    }
  }

  /** @param name as in the settings; the operator's list may name it with or without its provider */
  async facts(name: string): Promise<ModelFacts> {
    // The catalogue is large, and needed by those who start conversations only.
    const { catalogueFacts } = await import('./model-catalogue.data.js');
    const facts = catalogueFacts(name);
    const given = this.prices.get(name) ?? this.prices.get(name.slice(name.indexOf('/') + 1));
    return given ? { ...facts, price: given } : facts;
  }
}
