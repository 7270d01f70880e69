import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL } from '../packages/sandboxes/src/container-layout.js';
import { connectEngine } from '../packages/sandboxes/src/docker/engine.js';
import { linkWithCode } from '../src/web/web-app-link.js';
import { startFakeBitbucket } from '../test/fakes/fake-bitbucket.js';
import { followedOf } from '../test/fakes/fake-followed.js';
import { startFakeGithub } from '../test/fakes/fake-github.js';
import { startFakeGitlab } from '../test/fakes/fake-gitlab.js';
import type { FakeServer } from '../test/fakes/fake-server.js';
import type { FakeChangeRequest, FakeWorld } from '../test/fakes/fake-world.js';
import { type Script, ScriptedLlm } from '../packages/agent-server/test/fakes/scripted-llm.js';
import { bridgeAddress } from '../test/support/engine-address.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { fillLoop } from './automations-world.js';
import { DemoHost } from './demo-host.js';
import { demoModel } from './demo-model.js';
import { demoWorld } from './demo-world.js';

/** How long the fakes take for a response: about as long as the real hosts. */
const LATENCY_MS = 120;
/** Pause between two chunks of the model's responses. */
const MODEL_PAUSE_MS = 15;
/** All tasks of the story's world at once, and some more. */
const MAX_SANDBOXES = 20;
/** The hosts are in this process, which is slow to answer where a browser and twenty sandboxes are on the same machine. */
const PATIENCE = { GIT_REQUEST_TIMEOUT_SECONDS: '60', SUGGESTED_TASKS_TIMEOUT_SECONDS: '90' };
const REMOVAL_TIMEOUT_MS = 120_000;
const POLL_MS = 50;

/** The service, the three git hosts that it uses, and the people of the story. */
export interface Demo {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** Key of the administrator. */
  apiKey: string;
  nadia: {
    apiKey: string;
    /** A link to the console that signs her in, once. */
    signInLink(): Promise<string>;
  };
  worlds: Record<HostName, FakeWorld>;
  hosts: Record<HostName, DemoHost>;
  /** The API of the GitLab. */
  gitlab: FakeServer;
  /** `llm_base_url` of the script in place of a model. */
  modelUrl: string;
  /** Ends the service and starts it again at the same address; sandboxes go on meanwhile. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

type HostName = 'github' | 'gitlab' | 'bitbucket';

interface DemoOptions {
  /** Replaces the model; the demo's own script by default. */
  script?: Script;
  /** Hosts that sandboxes may reach besides the model's. */
  sandboxHosts?: string[];
  /** Further variables of the service. */
  environment?: Record<string, string>;
}

/** The sandbox backend of the demo. */
interface DemoBackend {
  /** Environment variables of the service. */
  environment: Record<string, string>;
  /** An address of this machine that sandboxes can reach. */
  host: string;
  /** How many sandboxes remain, running or not. */
  remaining(dataDir: string): Promise<number>;
}

/** The commit as Bitbucket abbreviates it. */
function headOf(change: FakeChangeRequest): string {
  return followedOf(change).head.slice(0, 12);
}

/** Starts everything on this machine, with an embedded database in a folder that is removed at the end. */
export async function startDemo({
  script = demoModel,
  sandboxHosts = [],
  environment = {},
}: DemoOptions = {}): Promise<Demo> {
  const backend = await demoBackend();
  const apiKey = 'demo-key-of-the-administrator';
  const worlds = demoWorld(Date.now());
  const hosts = {
    github: await DemoHost.start(worlds.github, 'x-access-token', backend.host),
    gitlab: await DemoHost.start(worlds.gitlab, 'oauth2', backend.host),
    bitbucket: await DemoHost.start(worlds.bitbucket, 'x-bitbucket-api-token-auth', backend.host),
  };
  const { github, gitlab, bitbucket } = hosts;
  const latencyMs = LATENCY_MS;
  const apis = {
    github: await startFakeGithub(worlds.github, { latencyMs }),
    gitlab: await startFakeGitlab(worlds.gitlab, { latencyMs }),
    bitbucket: await startFakeBitbucket(worlds.bitbucket, { latencyMs, headOf }),
  };
  const model = await ScriptedLlm.start(script, {
    chunkDelayMs: MODEL_PAUSE_MS,
    host: backend.host,
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-demo-'));
  const closeRest = async () => {
    await Promise.all([...Object.values(hosts), ...Object.values(apis), model].map((host) => host.close()));
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
        GITHUB_API_URL: apis.github.origin,
        GITHUB_CLONE_URL: github.repositories.origin,
        GITLAB_API_URL: `${apis.gitlab.origin}/api`,
        GITLAB_CLONE_URL: gitlab.repositories.origin,
        BITBUCKET_API_URL: `${apis.bitbucket.origin}/2.0`,
        BITBUCKET_CLONE_URL: bitbucket.repositories.origin,
        MAX_RUNNING_SANDBOXES: String(MAX_SANDBOXES),
        ...PATIENCE,
        SANDBOX_NETWORK_ALLOW: [new URL(model.url).host, ...sandboxHosts].join(','),
        ...backend.environment,
        ...environment,
      },
      hasChannel: true,
    };
    const [started] = await Promise.all([
      startServiceProcess(options),
      github.fill().then(() => fillLoop(github)),
      gitlab.fill(),
      bitbucket.fill(),
    ]);
    let service = started;
    const { url } = service;
    const nadiasKey = await issueKey(url, apiKey, worlds.github.user.email ?? '');
    return {
      url,
      apiKey,
      nadia: {
        apiKey: nadiasKey,
        signInLink: async () => {
          const code = await service.ask('sign_in_code', { sign_in_key: nadiasKey });
          const page = `http://localhost:${new URL(url).port}/console/`;
          return linkWithCode(page, new URL(url).hostname, () => code);
        },
      },
      worlds,
      hosts,
      gitlab: apis.gitlab,
      modelUrl: model.url,
      restart: async () => {
        await service.stop();
        options.environment.PORT = new URL(url).port;
        service = await startServiceProcess(options);
      },
      close: async () => {
        // Sandboxes outlive the service, and would outlive the demo.
        await removeSandboxes(url, nadiasKey, '');
        await removeSandboxes(url, apiKey, '?all=true');
        await untilNone(() => backend.remaining(path.join(folder, 'data')));
        await service.stop();
        await closeRest();
      },
    };
  } catch (error) {
    await closeRest();
    throw error;
  }
}

/** The key of a new user. */
async function issueKey(url: string, administrator: string, email: string): Promise<string> {
  const post = async (address: string, body: object): Promise<unknown> => {
    const response = await fetch(`${url}${address}`, {
      method: 'POST',
      headers: { 'X-Session-API-Key': administrator, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) {
      throw new Error(`${address} responded ${response.status}: ${await response.text()}`);
    }
    return await response.json();
  };
  const user = await post('/api/v1/users', { email });
  const issued = await post('/api/v1/api-keys', { name: 'demo', user_id: jsonText(user, 'id') });
  return jsonText(issued, 'key') ?? '';
}

async function removeSandboxes(url: string, apiKey: string, query: string): Promise<void> {
  const headers = { 'X-Session-API-Key': apiKey };
  const page: unknown = await (await fetch(`${url}/api/v1/sandboxes/search${query}`, { headers })).json();
  for (const sandbox of jsonList(page, 'items')) {
    const address = `${url}/api/v1/sandboxes/${jsonText(sandbox, 'id') ?? ''}`;
    const { ok } = await fetch(address, { method: 'DELETE', headers });
    if (!ok) {
      // Those of other users can be stopped only.
      await fetch(`${address}/pause`, { method: 'POST', headers });
    }
  }
}

/** A removed sandbox leaves the list at once, but its files and containers are removed a moment later. */
async function untilNone(remaining: () => Promise<number>): Promise<void> {
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
