import { z } from 'zod';
import type { MCPToolObservation } from '@slipway/agent-protocol/events.js';
import { parseJson } from '@slipway/common/json-access.js';
import { clipText } from '../clipped-text.js';
import { type ToolContext, McpSchemaTool } from './tool.js';

const SEARCH_TIMEOUT_MS = 30_000;
const MAX_ERROR_TEXT = 500;

const schema = z.object({
  query: z.string().min(1).max(400).describe('What to search for, in a few words.'),
  max_results: z.number().int().min(1).max(20).default(5),
});

const responseSchema = z.object({
  answer: z.string().nullish(),
  results: z
    .array(z.object({ title: z.string().default(''), url: z.string(), content: z.string().default('') }))
    .default([]),
});

interface WebSearchOptions {
  apiKey: string;
  apiUrl: string;
}

/** Searches the web with Tavily (`POST /search`). */
export class WebSearchTool extends McpSchemaTool<typeof schema> {
  readonly name = 'web_search';
  readonly description =
    'Search the web for something that is not in the workspace: documentation, error messages, versions. Answers ' +
    'titles, addresses and excerpts.';
  readonly needsConfirmation = true;
  readonly schema = schema;
  readonly #options: WebSearchOptions;

  constructor(options: WebSearchOptions) {
    super();
    this.#options = options;
  }

  async run(
    { query, max_results }: z.output<typeof schema>,
    { signal }: ToolContext,
  ): Promise<MCPToolObservation> {
    const response = await fetch(`${this.#options.apiUrl.replace(/\/+$/, '')}/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#options.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, max_results }),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(SEARCH_TIMEOUT_MS)]),
    });
    const body = await response.text();
    if (!response.ok) {
      return this.observe(`The search failed: ${response.status} ${clipText(body, MAX_ERROR_TEXT)}`, true);
    }
    const found = responseSchema.safeParse(parseJson(body));
    return found.success
      ? this.observe(describeResults(found.data), false)
      : this.observe('The search service returned something that is not a search result.', true);
  }
}

function describeResults({ answer, results }: z.output<typeof responseSchema>): string {
  const found = results.map(
    ({ title, url, content }, index) => `${index + 1}. ${title}\n${url}\n${content.trim()}`,
  );
  const parts = [...(answer ? [answer] : []), ...found];
  return parts.length === 0 ? 'Nothing was found.' : parts.join('\n\n');
}
