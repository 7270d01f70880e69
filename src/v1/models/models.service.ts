import { Injectable } from '@nestjs/common';
import {
  type Page,
  type PageRequest,
  parseNumberCursor,
  parsePageId,
  toPage,
} from '@slipway/api/pagination/page.js';
import { type ListedModel, ModelCatalogue } from '@slipway/models/model-catalogue.js';

interface ListSearch extends PageRequest {
  query?: string;
  verified__eq?: boolean;
}

interface ListedProvider {
  name: string;
  verified: boolean;
}

/** A page id holds how many entries come before the page, at most these. */
const MAX_OFFSET = 999_999;

/** Searches the models that users may choose, and their providers. */
@Injectable()
export class ModelsService {
  constructor(private readonly catalogue: ModelCatalogue) {}

  /** Filters by provider and name. */
  async searchModels(search: ListSearch & { provider__eq?: string }): Promise<Page<ListedModel>> {
    const { provider__eq: provider } = search;
    const models = await this.catalogue.list();
    return pageOf(
      'models',
      provider === undefined ? models : models.filter((model) => model.provider === provider),
      search,
    );
  }

  /** Verified ones first, then by name. */
  async searchProviders(search: ListSearch): Promise<Page<ListedProvider>> {
    const providers = new Map<string, ListedProvider>();
    for (const { provider, verified } of await this.catalogue.list()) {
      if (provider !== null) {
        const known = providers.get(provider);
        providers.set(provider, { name: provider, verified: verified || known?.verified === true });
      }
    }
    const listed = [...providers.values()].toSorted((a, b) => Number(b.verified) - Number(a.verified));
    return pageOf('providers', listed, search);
  }
}

function pageOf<Entry extends ListedProvider>(
  list: string,
  entries: readonly Entry[],
  { query = '', verified__eq: verified, page_id: pageId, limit }: ListSearch,
): Page<Entry> {
  const part = query.toLowerCase();
  const found = entries.filter(
    (entry) =>
      entry.name.toLowerCase().includes(part) && (verified === undefined || entry.verified === verified),
  );
  const offset = parsePageId(list, pageId, parseNumberCursor(MAX_OFFSET)) ?? 0;
  return toPage(list, found.slice(offset, offset + limit + 1), limit, () => String(offset + limit));
}
