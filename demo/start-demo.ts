import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL } from '../src/v1/sandboxes/backends/container-layout.js';
import { connectEngine } from '../src/v1/sandboxes/backends/docker/engine.js';
import { startFakeBitbucket } from '../test/fakes/fake-bitbucket.js';
import { push } from '../test/fakes/fake-followed.js';
import { startFakeGithub } from '../test/fakes/fake-github.js';
import { startFakeGitlab } from '../test/fakes/fake-gitlab.js';
import type { FakeServer } from '../test/fakes/fake-server.js';
import type { FakeWorld } from '../test/fakes/fake-world.js';
import { type GitHttpServer, startGitHttpServer } from '../test/fakes/git-http-server.js';
import { type Script, ScriptedLlm } from '../packages/agent-server/test/fakes/scripted-llm.js';
import { bridgeAddress } from '../test/support/engine-address.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { demoModel } from './demo-model.js';
import { DEMO_FILES, DEMO_REPOSITORY, demoWorld } from './demo-world.js';

/** How long the fakes take for a response: about as long as the real hosts. */
const LATENCY_MS = 120;
/** Pause between two chunks of the model's responses. */
const MODEL_PAUSE_MS = 15;
const REMOVAL_TIMEOUT_MS = 10_000;
const POLL_MS = 50;

/** The service and the three git hosts that it uses. */
export interface Demo {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  apiKey: string;
  worlds: { github: FakeWorld; gitlab: FakeWorld; bitbucket: FakeWorld };
  gitlab: FakeServer;
  /** Of the GitHub. */
  repositories: GitHttpServer;
  /** `llm_base_url` of the script in place of a model. */
  modelUrl: string;
  /** Ends the service and starts it again at the same address; sandboxes go on meanwhile. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface DemoOptions {
  /** In place of the model; the demo's own script by default. */
  script?: Script;
  /** Hosts that sandboxes may reach besides the model's. */
  sandboxHosts?: string[];
  /** Further variables of the service. */
  environment?: Record<string, string>;
}

/** Where the sandboxes of the demo run. */
interface DemoBackend {
  /** Environment variables of the service. */
  environment: Record<string, string>;
  /** An address of this machine that sandboxes can reach. */
  host: string;
  /** How many sandboxes remain, running or not. */
  remaining(dataDir: string): Promise<number>;
}

/** Starts everything on this machine, with an embedded database in a folder that is removed at the end. */
export async function startDemo({
  script = demoModel,
  sandboxHosts = [],
  environment = {},
}: DemoOptions = {}): Promise<Demo> {
  const backend = await demoBackend();
  const apiKey = 'demo-key-of-nadia';
  const worlds = demoWorld(Date.now());
  const gitlab = await startFakeGitlab(worlds.gitlab, { latencyMs: LATENCY_MS });
  const bitbucket = await startFakeBitbucket(worlds.bitbucket, { latencyMs: LATENCY_MS });
  const repositories = await startGitHttpServer(`x-access-token:${worlds.github.token}`, backend.host);
  const github = await startFakeGithub(worlds.github, {
    latencyMs: LATENCY_MS,
    gate: () => showPushes(worlds.github, repositories),
  });
  await repositories.commit(DEMO_REPOSITORY, 'main', DEMO_FILES);
  const model = await ScriptedLlm.start(script, {
    chunkDelayMs: MODEL_PAUSE_MS,
    host: backend.host,
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-demo-'));
  const closeRest = async () => {
    await Promise.all([github, gitlab, bitbucket, repositories, model].map((host) => host.close()));
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  try {
    // Under root, PostgreSQL runs as another user, who needs access to folders below this one.
    await chmod(folder, 0o711);
    const options = {
      cwd: folder,
      environment: {
        PORT: process.env['PORT'] ?? '0',
        DATA_DIR: path.join(folder, 'data'),
        BOOTSTRAP_API_KEY: apiKey,
        GITHUB_API_URL: github.origin,
        GITHUB_CLONE_URL: repositories.origin,
        GITLAB_API_URL: `${gitlab.origin}/api`,
        BITBUCKET_API_URL: `${bitbucket.origin}/2.0`,
        SANDBOX_NETWORK_ALLOW: [new URL(model.url).host, ...sandboxHosts].join(','),
        ...backend.environment,
        ...environment,
      },
    };
    let service = await startServiceProcess(options);
    const { url } = service;
    return {
      url,
      apiKey,
      worlds,
      gitlab,
      repositories,
      modelUrl: model.url,
      restart: async () => {
        await service.stop();
        options.environment.PORT = new URL(url).port;
        service = await startServiceProcess(options);
      },
      close: async () => {
        // Sandboxes outlive the service, and would outlive the demo.
        await removeSandboxes(url, apiKey, () => backend.remaining(path.join(folder, 'data')));
        await service.stop();
        await closeRest();
      },
    };
  } catch (error) {
    await closeRest();
    throw error;
  }
}

/** Gives pull requests that were opened here the commits that were really pushed. */
export async function showPushes(world: FakeWorld, repositories: GitHttpServer): Promise<void> {
  for (const change of world.changeRequests) {
    if (change.sourceBranch !== undefined) {
      push(change, await repositories.tip(change.repository, change.sourceBranch));
    }
  }
}

async function removeSandboxes(url: string, apiKey: string, remaining: () => Promise<number>): Promise<void> {
  const headers = { 'X-Session-API-Key': apiKey };
  const page: unknown = await (await fetch(`${url}/api/v1/sandboxes/search?all=true`, { headers })).json();
  for (const sandbox of jsonList(page, 'items')) {
    const address = `${url}/api/v1/sandboxes/${jsonText(sandbox, 'id') ?? ''}`;
    const { ok } = await fetch(address, { method: 'DELETE', headers });
    if (!ok) {
      // Those of other users can be stopped only.
      await fetch(`${address}/pause`, { method: 'POST', headers });
    }
  }
  // A removed sandbox leaves the list at once, but its files and containers are removed a moment later.
  for (let waited = 0; (await remaining()) > 0 && waited < REMOVAL_TIMEOUT_MS; waited += POLL_MS) {
    await delay(POLL_MS);
  }
}

/**
 * The backend that `SANDBOX_BACKEND` names, `process` by default.
 *
 * @throws Error when containers cannot reach this machine
 */
async function demoBackend(): Promise<DemoBackend> {
  return process.env['SANDBOX_BACKEND'] === 'docker' ? await containers() : processes();
}

function processes(): DemoBackend {
  return {
    environment: {},
    host: '127.0.0.1',
    remaining: async (dataDir) => {
      const folder = path.join(dataDir, 'sandboxes');
      return existsSync(folder) ? (await readdir(folder)).length : 0;
    },
  };
}

async function containers(): Promise<DemoBackend> {
  const dockerHost = process.env['DOCKER_HOST'] ?? null;
  const engine = connectEngine(dockerHost);
  const host = await bridgeAddress(engine);
  if (host === null) {
    throw new Error(
      'SANDBOX_BACKEND=docker: containers cannot reach the fakes; run the demo with a Docker engine on this machine that has its default network',
    );
  }
  const instance = `slipway-demo-${process.pid}`;
  return {
    environment: {
      SANDBOX_BACKEND: 'docker',
      INSTANCE_ID: instance,
      ...(dockerHost !== null && { DOCKER_HOST: dockerHost }),
    },
    host,
    remaining: async () => {
      const filters = { label: [`${INSTANCE_LABEL}=${instance}`] };
      const found = await engine.listContainers({ all: true, filters });
      const { Volumes: volumes } = await engine.listVolumes({ filters: JSON.stringify(filters) });
      return found.length + volumes.length;
    },
  };
}
