import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type FakeResponse, FakeServer } from '../../../../test/fakes/fake-server.js';
import { webSearchTool } from './web-search.tool.js';

let server: FakeServer;
let answer: FakeResponse;

beforeEach(async () => {
  server = await FakeServer.start(() => answer);
});

afterEach(async () => {
  await server.close();
});

async function search() {
  const tool = webSearchTool({ apiKey: 'tvly-key', apiUrl: `${server.origin}/` });
  const context = { workingDir: '/', environment: {}, signal: new AbortController().signal };
  return await tool.prepare({ query: 'node streams' }).run(context);
}

describe('web_search', () => {
  it('searches with Tavily and shows titles, addresses and excerpts', async () => {
    answer = {
      body: {
        answer: null,
        results: [{ title: 'Streams', url: 'https://nodejs.org', content: ' About streams. ', score: 1 }],
      },
    };
    expect(await search()).toEqual({
      kind: 'MCPToolObservation',
      tool_name: 'web_search',
      is_error: false,
      content: [{ type: 'text', text: '1. Streams\nhttps://nodejs.org\nAbout streams.' }],
    });
    expect(server.requests).toMatchObject([
      { method: 'POST', path: '/search', headers: { authorization: 'Bearer tvly-key' } },
    ]);
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual({ query: 'node streams', max_results: 5 });
  });

  it.each([
    [{ status: 401, body: { detail: { error: 'bad key' } } }, true, 'The search failed: 401'],
    [{ body: 'no json' }, true, 'not a search result'],
    [{ body: { results: [] } }, false, 'Nothing was found.'],
  ])('answers %j in words', async (response, isError, text) => {
    answer = response;
    const observation = await search();
    expect(observation.is_error).toBe(isError);
    expect(JSON.stringify(observation.content)).toContain(text);
  });
});
