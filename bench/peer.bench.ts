import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';
import { NotInstallable } from '../test/clients/client.js';
import { startFakeGitlab } from '../test/fakes/fake-gitlab.js';
import type { FakeWorld } from '../test/fakes/fake-world.js';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { benchWorld } from './support/fake-git-hosts.js';
import { withFolder } from './support/fixtures.js';
import { HttpClient } from './support/http-client.js';
import { installPeer, startPeer } from './support/peer-server.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { withSandboxService } from './support/sandbox-service.js';
import { npmStart } from './support/started-programs.js';

const LATENCY_MS = 150;
const STARTS = 2;
const CALLS = 30;
const TASK_ROUNDS = 7;
const CONVERSATIONS = 3;
const MESSAGES = 3;
const READY_TIMEOUT_MS = 240_000;
const EVENT_TIMEOUT_MS = 60_000;
/** The peer makes a caller wait who sends more than ten requests in a second. It applies to both. */
const BETWEEN_CALLS_MS = 125;
const SETTINGS = '/api/v1/settings';
const TASKS = '/api/v1/git/suggested-tasks/search';
const STARTED = '/api/v1/app-conversations';

type Side = 'ours' | 'peer';
/** The figures of one row; a side without any says in `reasons` why. */
interface Row {
  what: string;
  ours: number[];
  peer: number[];
  reasons: string[];
}
type Clients = Record<Side, HttpClient>;
const SIDES: readonly Side[] = ['ours', 'peer'];

/** The peer's server beside ours: the same requests of its API in turns, with the same model and git host. */
export async function benchPeer(): Promise<Outcome[]> {
  const python = await installPeer().catch((error: unknown) => {
    if (!(error instanceof NotInstallable)) {
      throw error;
    }
    print(
      `  NOT MEASURED: ${error.message}. It needs Python 3.12 or 3.13 (PYTHON names one) and a package index.`,
    );
    return null;
  });
  if (python === null) {
    return [];
  }
  const rows = await withFolder(async (folder) => {
    const starts = await startRow(python, folder);
    const llm = await ScriptedLlm.start(() => say('It is done.'));
    const world = benchWorld();
    const gitlab = await startFakeGitlab(world, { latencyMs: LATENCY_MS });
    const peer = await startPeer(python, path.join(folder, 'peer'));
    const environment = {
      SANDBOX_NETWORK_ALLOW: new URL(llm.url).host,
      GITLAB_API_URL: `${gitlab.origin}/api`,
    };
    try {
      return await withSandboxService(environment, async ({ clients: [ours] }) => {
        const clients = { ours, peer: new HttpClient(peer.url, 'it asks for none') };
        try {
          return [
            starts,
            ...(await callRows(clients, llm.url)),
            ...(await taskRows(clients, world, gitlab.origin)),
            ...(await conversationRows(clients)),
          ];
        } finally {
          clients.peer.close();
        }
      });
    } finally {
      await peer.stop();
      await gitlab.close();
      await llm.close();
    }
  });
  return rows.flatMap((row) => outcomeOf(row));
}

/** Both on folders that they know already. */
async function startRow(python: string, folder: string): Promise<Row> {
  const row = newRow('start to the first answer');
  for (let round = 0; round <= STARTS; round += 1) {
    const ours = await npmStart(path.join(folder, 'npm-start'));
    await ours.stop();
    const peer = await startPeer(python, path.join(folder, 'peer'));
    await peer.stop();
    if (round > 0) {
      row.ours.push(ours.readyMs);
      row.peer.push(peer.readyMs);
    }
  }
  return row;
}

async function callRows(clients: Clients, modelUrl: string): Promise<Row[]> {
  const llm = { model: 'openai/scripted', api_key: 'sk-bench', base_url: modelUrl };
  const body = JSON.stringify({ language: 'en', agent_settings_diff: { llm } });
  const calls = [
    { what: 'POST settings', request: { method: 'POST', path: SETTINGS, body } },
    { what: 'GET settings', request: { method: 'GET', path: SETTINGS } },
    { what: 'list of conversations, empty', request: { method: 'GET', path: `${STARTED}/search` } },
  ] as const;
  const rows = calls.map(({ what }) => newRow(what));
  for (let round = 0; round <= CALLS; round += 1) {
    for (const [index, { request }] of calls.entries()) {
      for (const side of SIDES) {
        const { ms } = await clients[side].expectOk(request);
        if (round > 0) {
          rows[index]?.[side].push(ms);
        }
        await delay(BETWEEN_CALLS_MS);
      }
    }
  }
  return rows;
}

/** With a GitLab alone: of its git hosts only this one may have an address without TLS. */
async function taskRows(clients: Clients, world: FakeWorld, host: string): Promise<Row[]> {
  const cold = newRow(`suggested tasks of a GitLab that takes ${LATENCY_MS} ms, with a new token`);
  const again = newRow('the same once more');
  for (let round = 1; round <= TASK_ROUNDS; round += 1) {
    world.token = `glpat-bench${round}`;
    for (const side of SIDES) {
      const gitlab = { token: world.token, ...(side === 'peer' && { host }) };
      const body = JSON.stringify({ provider_tokens: { gitlab } });
      await clients[side].expectOk({ method: 'POST', path: '/api/v1/secrets/git-providers', body });
      for (const row of [cold, again]) {
        await delay(BETWEEN_CALLS_MS);
        const response = await clients[side].expectOk({ method: 'GET', path: TASKS });
        const count = jsonList(JSON.parse(response.body), 'items').length;
        // Repositories without instructions for agents may be tasks as well.
        if (count >= world.changeRequests.length) {
          row[side].push(response.ms);
        } else {
          row.reasons.push(`${side}: ${count} of ${world.changeRequests.length} tasks were in an answer`);
        }
      }
    }
  }
  return [cold, again];
}

async function conversationRows(clients: Clients): Promise<Row[]> {
  const ready = newRow('POST app-conversations to READY');
  const message = newRow('message to the first event of the agent, on its WebSocket');
  for (let round = 1; round <= CONVERSATIONS; round += 1) {
    for (const side of SIDES) {
      const { ms, task } = await startedConversation(clients[side]);
      const sandbox = jsonText(task, 'sandbox_id');
      if (jsonText(task, 'status') === 'READY') {
        ready[side].push(ms);
        message[side].push(
          ...(await messageTimes(clients[side], jsonText(task, 'app_conversation_id') ?? '')),
        );
      } else {
        const reason = `${side}: start ${round} ended as ${jsonText(task, 'status')}: ${jsonText(task, 'detail')}`;
        ready.reasons.push(reason);
        message.reasons.push(`${side}: start ${round} was not READY`);
      }
      if (sandbox !== null) {
        // The peer has none to delete when a start failed.
        await clients[side].send({
          method: 'DELETE',
          path: `/api/v1/sandboxes/${sandbox}?sandbox_id=${sandbox}`,
        });
      }
    }
  }
  return [ready, message];
}

/** Both are asked equally often; what is measured is that exact. */
async function startedConversation(client: HttpClient): Promise<{ ms: number; task: unknown }> {
  const startedAt = performance.now();
  const { body } = await client.expectOk({ method: 'POST', path: STARTED, body: '{}' });
  let task: unknown = JSON.parse(body);
  for (;;) {
    const ms = performance.now() - startedAt;
    const isOver = ['READY', 'ERROR'].includes(jsonText(task, 'status') ?? '');
    if (isOver || ms > READY_TIMEOUT_MS) {
      return { ms, task };
    }
    await delay(BETWEEN_CALLS_MS);
    const id = jsonText(JSON.parse(body), 'id') ?? '';
    [task] = jsonList(await client.json({ method: 'GET', path: `${STARTED}/start-tasks?ids=${id}` }));
  }
}

/** Speaks to the agent server itself, at the address that clients get. */
async function messageTimes(client: HttpClient, id: string): Promise<number[]> {
  const [conversation] = jsonList(await client.json({ method: 'GET', path: `${STARTED}?ids=${id}` }));
  const url = new URL(jsonText(conversation, 'conversation_url') ?? '');
  const key = jsonText(conversation, 'session_api_key') ?? '';
  const socketUrl = `ws://${url.host}/sockets/events/${url.pathname.split('/').at(-1)}?session_api_key=${key}`;
  const socket = new WebSocket(socketUrl);
  const opened = Promise.withResolvers<void>();
  let arrived = Promise.withResolvers<number>();
  socket.addEventListener('open', () => opened.resolve());
  socket.addEventListener('error', () => opened.reject(new Error(`${url.host} has refused a WebSocket`)));
  socket.addEventListener('message', ({ data }) => {
    const event = parseJson(String(data));
    if (jsonAt(event, 'source') === 'agent' && jsonAt(event, 'kind') === 'MessageEvent') {
      arrived.resolve(performance.now());
    }
  });
  await opened.promise;
  const times: number[] = [];
  try {
    for (let message = 1; message <= MESSAGES; message += 1) {
      arrived = Promise.withResolvers<number>();
      const sentAt = performance.now();
      const response = await fetch(`${url.href}/events`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-session-api-key': key },
        body: JSON.stringify({ role: 'user', content: [{ type: 'text', text: 'Go on.' }], run: true }),
      });
      if (!response.ok) {
        throw new Error(`${url.href}/events responded ${response.status}`);
      }
      times.push((await inTime(arrived.promise)) - sentAt);
      // By then the run that the message began is over.
      await delay(BETWEEN_CALLS_MS * 4);
    }
  } finally {
    socket.close();
  }
  return times;
}

async function inTime(arrival: Promise<number>): Promise<number> {
  const stopped = new AbortController();
  const late = delay(EVENT_TIMEOUT_MS, null, { signal: stopped.signal }).then((): never => {
    throw new Error('no event of the agent has arrived within a minute');
  });
  try {
    return await Promise.race([arrival, late]);
  } finally {
    stopped.abort();
    late.catch(() => undefined);
  }
}

function newRow(what: string): Row {
  return { what, ours: [], peer: [], reasons: [] };
}

/** Prints the row. Without figures of both sides there is no outcome. */
function outcomeOf({ what, ours, peer, reasons }: Row): Outcome[] {
  const isWhole = ours.length > 0 && peer.length > 0;
  const ratio = isWhole ? median(peer) / median(ours) : NaN;
  print(`  | ${what} | ${text(ours)} | ${text(peer)} | ${isWhole ? `${ratio.toFixed(1)} x` : ''} |`);
  for (const reason of new Set(reasons)) {
    print(`      ${reason}`);
  }
  return isWhole
    ? [
        {
          what,
          target: '>= 1 x',
          measured: `${ratio.toFixed(1)} x (${text(ours)}, the peer ${text(peer)})`,
          reached: ratio >= 1,
        },
      ]
    : [];
}

function text(values: readonly number[]): string {
  return values.length === 0 ? 'not measured' : `${spread(values, 1)} ms`;
}
