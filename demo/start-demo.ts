import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { jsonList, jsonText } from '../src/common/json-access.js';
import { startFakeBitbucket } from '../test/fakes/fake-bitbucket.js';
import { startFakeGithub } from '../test/fakes/fake-github.js';
import { startFakeGitlab } from '../test/fakes/fake-gitlab.js';
import type { FakeServer } from '../test/fakes/fake-server.js';
import type { FakeWorld } from '../test/fakes/fake-world.js';
import { startGitHttpServer } from '../test/fakes/git-http-server.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { demoBackend } from './demo-backend.js';
import { demoModel } from './demo-model.js';
import { DEMO_FILES, DEMO_REPOSITORY } from './demo-repository.js';
import { demoWorld } from './demo-world.js';

/** How long the stand-ins take for an answer: about what the real ones take. */
const LATENCY_MS = 120;
/** Between two pieces of the model's answers. */
const MODEL_PAUSE_MS = 15;
const REMOVAL_MS = 10_000;
const POLL_MS = 50;

/** The service and the three git hosts that it knows. */
export interface Demo {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  apiKey: string;
  worlds: { github: FakeWorld; gitlab: FakeWorld; bitbucket: FakeWorld };
  gitlab: FakeServer;
  /** `llm_base_url` of the script that stands in for a model. */
  modelUrl: string;
  close(): Promise<void>;
}

/** Starts everything on this machine, on an embedded database in a folder that is removed at the end. */
export async function startDemo(): Promise<Demo> {
  const backend = await demoBackend();
  const apiKey = 'demo-key-of-nadia';
  const worlds = demoWorld(Date.now());
  const github = await startFakeGithub(worlds.github, { latencyMs: LATENCY_MS });
  const gitlab = await startFakeGitlab(worlds.gitlab, { latencyMs: LATENCY_MS });
  const bitbucket = await startFakeBitbucket(worlds.bitbucket, { latencyMs: LATENCY_MS });
  const repositories = await startGitHttpServer(`x-access-token:${worlds.github.token}`, backend.host);
  await repositories.commit(DEMO_REPOSITORY, 'main', DEMO_FILES);
  const model = await ScriptedLlm.start(demoModel, {
    chunkDelayMs: MODEL_PAUSE_MS,
    host: backend.host,
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-demo-'));
  const closeRest = async () => {
    await Promise.all([github, gitlab, bitbucket, repositories, model].map((host) => host.close()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    // Under root PostgreSQL runs as another user, who has to get in.
    await chmod(folder, 0o711);
    const service = await startServiceProcess({
      cwd: folder,
      environment: {
        PORT: process.env['PORT'] ?? '0',
        DATA_DIR: path.join(folder, 'data'),
        BOOTSTRAP_API_KEY: apiKey,
        GITHUB_API_URL: github.origin,
        GITHUB_CLONE_URL: repositories.origin,
        GITLAB_API_URL: `${gitlab.origin}/api`,
        BITBUCKET_API_URL: `${bitbucket.origin}/2.0`,
        ...backend.environment,
      },
    });
    return {
      url: service.url,
      apiKey,
      worlds,
      gitlab,
      modelUrl: model.url,
      close: async () => {
        // They outlive the service, and would outlive the demonstration.
        await removeSandboxes(service.url, apiKey, () => backend.left(path.join(folder, 'data')));
        await service.stop();
        await closeRest();
      },
    };
  } catch (error) {
    await closeRest();
    throw error;
  }
}

async function removeSandboxes(url: string, apiKey: string, left: () => Promise<number>): Promise<void> {
  const headers = { 'X-Session-API-Key': apiKey };
  const page: unknown = await (await fetch(`${url}/api/v1/sandboxes/search`, { headers })).json();
  for (const sandbox of jsonList(page, 'items')) {
    await fetch(`${url}/api/v1/sandboxes/${jsonText(sandbox, 'id') ?? ''}`, { method: 'DELETE', headers });
  }
  // A removed one is gone from the list at once, and everything else of it a moment later.
  for (let waited = 0; (await left()) > 0 && waited < REMOVAL_MS; waited += POLL_MS) {
    await wait(POLL_MS);
  }
}
