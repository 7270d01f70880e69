import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  type ProcessHarness,
  processHarness,
} from '../../src/v1/sandboxes/backends/process/process.sandbox-backend.harness.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { call, say as answer } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { say, StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { until } from '../support/until.js';

const run = promisify(execFile);
const TOKEN = 'ghp_processsecret4217';
const KEY = 'sk-processkey4217';
const WORK =
  'cp README.md copy.txt && git add copy.txt && git commit -qm "docs: copy" && git push -q origin HEAD';

/** Nothing is pretended but what the model says. */
describe('a conversation in a real sandbox', () => {
  jest.setTimeout(120_000);
  let harness: ProcessHarness;
  let git: GitHttpServer;
  let llm: ScriptedLlm;
  let app: TestApp;

  beforeAll(async () => {
    git = await startGitHttpServer(`x-access-token:${TOKEN}`);
    await git.commit('octo/app', 'main', { 'README.md': 'hello' });
    llm = await ScriptedLlm.start(inOrder(call('terminal', { command: WORK }), answer('It is pushed.')));
    harness = await processHarness('auto', {
      network: { mode: 'auto', allow: [git.origin, llm.url].map((address) => new URL(address).host) },
    });
    app = await createTestApp({ GITHUB_CLONE_URL: git.origin, ALLOW_UNSANDBOXED: 'true' }, undefined, {
      sandboxBackend: harness.backend,
    });
  });

  afterAll(async () => {
    await app.close();
    await llm.close();
    await git.close();
    await harness.close();
  });

  it('clones with a token, works, commits under the user’s name and pushes', async () => {
    const client = new StartsClient(app, app.user);
    await client.settings({
      llm_model: 'openai/scripted',
      llm_api_key: KEY,
      llm_base_url: llm.url,
      git_user_name: 'Ada Lovelace',
      git_user_email: 'ada@example.com',
    });
    await storeProviderToken(app, app.user, 'github', TOKEN);

    const task = await client.start({ selected_repository: 'octo/app', ...say('Copy the readme.') });
    const ready = await client.reached(task, 'READY');

    await until(() => llm.requests.length >= 2);
    const branch = `openhands-workspace-${ready.appConversationId.slice(0, 8)}`;
    const author = await git.show('octo/app', branch, '%an <%ae> %s');
    expect(author).toBe('Ada Lovelace <ada@example.com> docs: copy');
    for (const secret of [TOKEN, KEY]) {
      // The agent still writes: files may come and go while it is looked through them.
      const found = await run('grep', ['-rslF', secret, harness.options.folder]).catch(
        (error: { stdout: string }) => error,
      );
      expect(found.stdout).toBe('');
    }
  });
});
