import { setTimeout as delay } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import {
  insertConversations,
  insertEvents,
  insertSandboxes,
  removeSandboxes,
  type SandboxService,
  withSandboxService,
} from './support/sandbox-service.js';
import {
  postStart,
  type ReadyConversation,
  sendMessage,
  streamStart,
  untilFinished,
  untilReady,
} from './support/conversation-starts.js';
import { type EventStream, openEventStream, pageOutcome, readOutcome } from './support/http-client.js';
import { type Outcome, print, median, spread } from './support/report.js';
import { residentMemoryMb, treeMemory } from './support/process-usage.js';
import { untilTrue } from './support/fixtures.js';

const STARTS = 12;
/** The just-in-time compiler of a new service is still at work. */
const WARM_UP_STARTS = 10;
/** By then the work that follows the removal of a sandbox is done. */
const BETWEEN_STARTS_MS = 500;
const MAX_RESPONSE_MS = 15;
const CONVERSATIONS = 4;
const MESSAGES_PER_CONVERSATION = 4;
const MAX_EVENT_DELAY_MS = { first: 10, later: 5 };
const ALONE_STARTS = 7;
const MAX_READY_MS = 300;
const CONCURRENT_STARTS = 20;
const MAX_CONCURRENT_MS = 6_500;
const MAX_SANDBOX_MB = 40;
const SEVERAL_POLL_MS = 50;
const FIRST_MESSAGE = 'Say that it is done.';
const SANDBOX_ROWS = 100;
const CONVERSATION_ROWS = 1_000;
const EVENT_ROWS = 1_000;

/** Conversations in sandboxes that are processes of this machine, with a script in place of the model. */
export async function benchConversations(): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    const environment = { SANDBOX_NETWORK_ALLOW: new URL(llm.url).host };
    return await withSandboxService(environment, async (service) => {
      const [client, reader] = service.clients;
      const settings = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: llm.url };
      await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
      const response = await responseOutcome(service);
      const stream = await streamOutcome(service);
      const concurrent = await concurrentOutcome(service);
      await insertConversations(service, await insertSandboxes(service, SANDBOX_ROWS), CONVERSATION_ROWS);
      const search = '/api/v1/app-conversations/search?limit=100';
      const events = `conversation_id__eq=${await insertEvents(service, EVENT_ROWS)}`;
      return [
        response,
        ...stream,
        ...concurrent,
        await pageOutcome(reader, 'a page of 100 out of 1,000 conversations', search),
        await readOutcome(
          reader,
          'the pauses among 1,000 events, counted',
          `/api/v1/events/count?${events}&kind__eq=PauseEvent`,
          (count) => count === EVENT_ROWS / 10,
        ),
      ];
    });
  } finally {
    await llm.close();
  }
}

/** One start after the other: each is READY before the next is requested. */
async function responseOutcome({ clients: [client], database }: SandboxService): Promise<Outcome> {
  const responses: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_UP_STARTS + STARTS; run += 1) {
    await delay(BETWEEN_STARTS_MS);
    const { taskId, ms } = await postStart(client, null);
    await untilReady(client, [taskId], SEVERAL_POLL_MS);
    await removeSandboxes(client, database);
    const live = await client.expectOk({ method: 'GET', path: '/health/live' });
    if (run > WARM_UP_STARTS) {
      responses.push(ms);
      nothing.push(live.ms);
    }
  }
  print(`  POST responds after ${spread(responses, 1)} ms, /health/live ${spread(nothing, 1)} ms`);
  return {
    what: 'response of POST /app-conversations, median (and against /health/live)',
    target: `<= ${MAX_RESPONSE_MS} ms`,
    measured: `${spread(responses, 1)} ms (x${(median(responses) / median(nothing)).toFixed(1)})`,
    reached: median(responses) <= MAX_RESPONSE_MS,
  };
}

/** From the timestamp that the agent server gives an event of the agent to its arrival at a reader of the stream. */
async function streamOutcome({
  url,
  keys: [key],
  clients: [client],
  database,
}: SandboxService): Promise<Outcome[]> {
  const first: number[] = [];
  const later: number[] = [];
  for (let round = 1; round <= CONVERSATIONS; round += 1) {
    const { taskId } = await postStart(client, null);
    const [conversation] = await untilReady(client, [taskId]);
    if (!conversation) {
      throw new Error('failed to read a conversation that is READY');
    }
    const stream = await openEventStream(`${url}/api/v1/conversation/${conversation.id}/events/stream`, key);
    for (let message = 1; message <= MESSAGES_PER_CONVERSATION; message += 1) {
      await sendMessage(client, conversation, 'Go on.');
      await untilTrue(() => agentDelays(stream).length >= message, 'an event of the agent');
    }
    const [firstDelay = NaN, ...others] = agentDelays(stream);
    first.push(firstDelay);
    later.push(...others);
    stream.close();
    await removeSandboxes(client, database);
  }
  print(
    `  events of the agent on the stream: first ${spread(first, 0)} ms, later ones ${spread(later, 0)} ms`,
  );
  return Object.entries({ first, later }).map(([which, delays]) => {
    const target = which === 'first' ? MAX_EVENT_DELAY_MS.first : MAX_EVENT_DELAY_MS.later;
    return {
      what: `${which} events of the agent on the stream, after they were written`,
      target: `<= ${target} ms`,
      measured: `${spread(delays, 0)} ms`,
      reached: median(delays) <= target,
    };
  });
}

/** How long the agent's messages took to arrive, milliseconds. */
function agentDelays({ events }: EventStream): number[] {
  return events.flatMap(({ data, at }) => {
    const isAgentMessage = jsonText(data, 'source') === 'agent' && jsonText(data, 'kind') === 'MessageEvent';
    const writtenAt = Date.parse(`${jsonText(data, 'timestamp')?.slice(0, 23)}Z`);
    return isAgentMessage ? [at - writtenAt] : [];
  });
}

async function concurrentOutcome(service: SandboxService): Promise<Outcome[]> {
  const {
    clients: [client],
    database,
    dataDir,
    pid,
  } = service;
  const each: number[] = [];
  for (let round = 1; round <= ALONE_STARTS; round += 1) {
    each.push(await streamStart(client, FIRST_MESSAGE));
    await removeSandboxes(client, database);
    await delay(BETWEEN_STARTS_MS);
  }
  const alone = median(each);
  const { ms, conversations } = await startAtOnce(service);
  await untilFinished(client, conversations);
  const trees = await Promise.all(
    conversations.map(async ({ sandboxId }) => {
      const record = await readFile(path.join(dataDir, 'sandboxes', sandboxId, 'program.json'), 'utf8');
      return treeMemory(jsonNumber(JSON.parse(record), 'pid') ?? 0);
    }),
  );
  const known = trees.filter((tree) => tree !== null);
  if (known.length > 0) {
    print(
      `  memory of a sandbox after its run: PSS ${spread(
        known.map(({ pss }) => pss),
        0,
      )} MB, RSS ${spread(
        known.map(({ rss }) => rss),
        0,
      )} MB; of the service: RSS ${residentMemoryMb(pid).toFixed(0)} MB`,
    );
  }
  await removeSandboxes(client, database);
  const outcomes = [
    {
      what: 'one conversation alone is READY, from its request',
      target: `<= ${MAX_READY_MS} ms`,
      measured: `${spread(each, 0)} ms`,
      reached: alone <= MAX_READY_MS,
    },
    {
      what: `${CONCURRENT_STARTS} conversations started at once are READY (and per start, against one alone)`,
      target: `all, <= ${MAX_CONCURRENT_MS / 1000} s`,
      measured: `${conversations.length} after ${(ms / 1000).toFixed(1)} s (x${(ms / CONCURRENT_STARTS / alone).toFixed(2)})`,
      reached: conversations.length === CONCURRENT_STARTS && ms <= MAX_CONCURRENT_MS,
    },
  ];
  if (known.length === 0) {
    return outcomes;
  }
  const memory = median(known.map(({ pss }) => pss));
  const isSmall = memory <= MAX_SANDBOX_MB;
  const what = 'memory of a sandbox after its run, its share of common pages (PSS)';
  const measured = `${memory.toFixed(0)} MB`;
  return [...outcomes, { what, target: `<= ${MAX_SANDBOX_MB} MB`, measured, reached: isSmall }];
}

async function startAtOnce({
  clients: [client],
}: SandboxService): Promise<{ ms: number; conversations: ReadyConversation[] }> {
  const startedAt = performance.now();
  const tasks = await Promise.all(
    Array.from({ length: CONCURRENT_STARTS }, () => postStart(client, FIRST_MESSAGE)),
  );
  const ids = tasks.map(({ taskId }) => taskId);
  const conversations = await untilReady(client, ids, SEVERAL_POLL_MS);
  return { ms: performance.now() - startedAt, conversations };
}
