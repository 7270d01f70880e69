import { expect, it } from '@jest/globals';
import { tmpdir } from 'node:os';
import { isJsonObject } from '@slipway/common/json-access.js';
import { NativeTools } from '../../src/engine/native/native-tools.js';
import { filterPrompt } from '../../src/engine/native/prompt-filter.js';
import { RemoteAccess } from '../../src/git/remote-access.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';

/** What llama.cpp, xgrammar and OpenAI's strict mode cannot read, in a pattern. */
const UNCOMMON = [
  ['a look-around', /\(\?[=!<]/],
  ['a class or a property by its letter', /\\[a-mo-qsu-zA-Z0-9]/],
  ['no anchors', /^[^^]|[^$]$/],
] as const;

function patternsIn(value: unknown): string[] {
  if (Array.isArray(value)) {
    return value.flatMap(patternsIn);
  }
  return isJsonObject(value)
    ? Object.entries(value).flatMap(([name, member]) =>
        name === 'pattern' && typeof member === 'string' ? [member] : patternsIn(member),
      )
    : [];
}

// ggml-org/llama.cpp#27580, #27397: a pattern that the grammar of a server does not know, and each request is refused.
it('our tools are offered with schemas that the common grammars know', async () => {
  const view = { environment: toolEnvironment({}), wrapper: [] };
  const resultSchema = { type: 'object', properties: { id: { type: 'string', pattern: String.raw`^\d+$` } } };
  const settings = engineSettings(tmpdir(), 'http://127.0.0.1:9', { searchApiKey: 'k', resultSchema });
  const git = { ok: true, timedOut: false, output: '' };
  const tools = new NativeTools(new MemoryEngineHost(settings), {
    view,
    workArea: null,
    mcpConnectTimeoutMs: 1_000,
    mcpSlowAfterMs: 1_000,
    remoteAccess: () => new RemoteAccess({ view, privateFolder: tmpdir(), git: () => ({ credentials: [] }) }),
    pullRequests: {
      mayPush: () => true,
      push: async () => await Promise.resolve(git),
      open: async () => await Promise.resolve({ number: 1, url: 'https://git.example/1' }),
    },
  });
  const offered = [...tools.offered().values()];
  await tools.close();
  const target = { api: 'openai', baseUrl: 'http://127.0.0.1:8080/v1', model: 'qwen' } as const;
  const sent = filterPrompt({ instructions: '', messages: [], tools: offered }, target).tools;

  expect(sent.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['git_remote', 'create_pull_request', 'web_search', 'finish']),
  );
  const patterns = patternsIn(sent.map(({ inputSchema }) => inputSchema));
  expect(patterns).toContain('^[0-9]+$');
  const problems = patterns.flatMap((pattern) =>
    UNCOMMON.filter(([, form]) => form.test(pattern)).map(([problem]) => `${problem}: ${pattern}`),
  );
  expect(problems).toEqual([]);
});
