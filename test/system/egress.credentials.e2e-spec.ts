import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { call, say as answer } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import { AGENT_IMAGE, DockerHarness } from '../../packages/sandboxes/src/docker/docker.harness.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { type GitHttpServer, startGitHttpServer } from '../fakes/git-http-server.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { OWN_ADDRESS } from '../support/isolated-processes.js';
import { SandboxClient } from '../support/sandbox-client.js';
import { say, StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { until } from '../support/until.js';

const describeWithEngine = AGENT_IMAGE !== '' && OWN_ADDRESS !== undefined ? describe : describe.skip;

const TOKEN = 'ghp_0utside0utside0utside0utside0utside9';
const KEY = 'sk-0utside0utside0utside9';
const WORK = 'cp README.md copy.txt && git add copy.txt && git commit -qm copy && git push -q origin HEAD';
/** All that tools see of variables, arguments and files of the sandbox. */
const LOOK =
  'env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"; grep -rhs "" "$HOME" .git';

/** What no process sandbox shows: the way by which values get to containers (the rest is outside-credentials.e2e-spec). */
describeWithEngine(
  'a conversation in a container (SLIPWAY_TEST_DOCKER_IMAGE) whose credentials stay outside',
  () => {
    const host = String(OWN_ADDRESS);
    let harness: DockerHarness;
    let git: GitHttpServer;
    let llm: ScriptedLlm;

    beforeAll(async () => {
      git = await startGitHttpServer(`x-access-token:${TOKEN}`, host);
      await git.commit('octo/app', 'main', { 'README.md': 'hello' });
      harness = await DockerHarness.make('');
    });

    afterAll(async () => {
      await git.close();
      await harness.close();
    });

    it.each([
      ['alone', {}],
      ['and rules', { SANDBOX_EGRESS: '{"default":"deny"}' }],
    ])('clones, pushes and calls the model by them: %s', async (_what, rules) => {
      llm = await ScriptedLlm.start(inOrder(call('terminal', { command: WORK }), answer('It is pushed.')), {
        host,
      });
      const app: TestApp = await createTestApp(
        {
          GITHUB_CLONE_URL: git.origin,
          SANDBOX_BACKEND: 'docker',
          SANDBOX_CREDENTIALS: 'outside',
          SANDBOX_NETWORK_ALLOW: `${host}/32`,
          DATA_DIR: path.dirname(harness.socketFolder),
          ...rules,
        },
        undefined,
        { sandboxBackend: harness.backend, ownClock: true },
      );
      try {
        const client = new StartsClient(app, app.user);
        await client.settings({ llm_model: 'openai/scripted', llm_api_key: KEY, llm_base_url: llm.url });
        await storeProviderToken(app, app.user, 'github', TOKEN);
        const task = await client.start({ selected_repository: 'octo/app', ...say('Copy the readme.') });
        const { appConversationId: id } = await client.reached(task, 'READY');
        await until(() => llm.requests.length >= 2);
        expect(await git.show('octo/app', `openhands-workspace-${id.slice(0, 8)}`, '%s')).toBe('copy');
        expect(new Set(llm.requests.map(({ headers }) => headers['authorization']))).toEqual(
          new Set([`Bearer ${KEY}`]),
        );
        const sandboxId = (await client.sandboxes())[0]?.id ?? '';
        const target = await app.app.get(RunningSandboxQueries, { strict: false }).target(sandboxId);
        const inside = new SandboxClient(target?.address ?? '', target?.sessionKey ?? '');
        const { stdout } = await inside.run(LOOK, 'app');
        expect(stdout).toContain('HTTPS_PROXY');
        expect([TOKEN, KEY].filter((secret) => stdout.includes(secret))).toEqual([]);
      } finally {
        await app.close();
        await llm.close();
      }
    });
  },
);
