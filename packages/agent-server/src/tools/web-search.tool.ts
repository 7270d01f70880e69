import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { clipText } from '../clipped-text.js';
import { mcpSchemaTool, type Tool } from './tool.js';

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

export function webSearchTool({ apiKey, apiUrl }: { apiKey: string; apiUrl: string }): Tool {
  return mcpSchemaTool({
    name: 'web_search',
    description:
      'Search the web for something that is not in the workspace: documentation, error messages, versions. Answers ' +
      'titles, addresses and excerpts.',
    needsConfirmation: true,
    schema,
    run: async (input, { signal }) => {
      const response = await fetch(`${apiUrl.replace(/\/+$/, '')}/search`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(input),
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(SEARCH_TIMEOUT_MS)]),
      });
      const body = await response.text();
      if (!response.ok) {
        const text = `The search failed: ${response.status} ${clipText(body, MAX_ERROR_TEXT)}`;
        return { text, isError: true };
      }
      const found = responseSchema.safeParse(parseJson(body));
      return found.success
        ? { text: describeResults(found.data), isError: false }
        : { text: 'The search service returned something that is not a search result.', isError: true };
    },
  });
}

function describeResults({ answer, results }: z.output<typeof responseSchema>): string {
  const found = results.map(
    ({ title, url, content }, index) => `${index + 1}. ${title}\n${url}\n${content.trim()}`,
  );
  const parts = [...(answer ? [answer] : []), ...found];
  return parts.length === 0 ? 'Nothing was found.' : parts.join('\n\n');
}
