import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import {
  postStart,
  readyAfter,
  sendMessage,
  startAtOnce,
  untilFinished,
  untilReady,
  withConversations,
} from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import { type EventStream, openEventStream, pageOutcome } from './support/http-client.js';
import { residentMemoryMb, treeMemory } from './support/process-usage.js';
import { atMost, median, type Outcome, print, spread } from './support/report.js';
import {
  insertConversations,
  insertSandboxes,
  programPid,
  removeSandboxes,
  type SandboxService,
} from './support/sandbox-service.js';

const STARTS = 12;
/** The just-in-time compiler of a new service is still at work. */
const WARM_UP_STARTS = 10;
/** Lets the work that follows the removal of a sandbox end. */
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
/** Lets agent servers collect the garbage of their runs. */
const UNTIL_COLLECTED_MS = 12_000;
const FIRST_MESSAGE = 'Say that it is done.';
const SANDBOX_ROWS = 100;
const CONVERSATION_ROWS = 1_000;

/** Conversations in sandboxes that are processes of this machine, with a script in place of the model. */
export async function benchConversations(): Promise<Outcome[]> {
  return await withConversations({}, async (service) => {
    const [, reader] = service.clients;
    const measured = [
      await responseOutcome(service),
      ...(await streamOutcomes(service)),
      ...(await concurrentOutcomes(service)),
    ];
    await insertConversations(service, await insertSandboxes(service, SANDBOX_ROWS), CONVERSATION_ROWS);
    const search = '/api/v1/app-conversations/search?limit=100';
    return [...measured, await pageOutcome(reader, 'a page of 100 out of 1,000 conversations', search)];
  });
}

/** One start after the other: each is READY before the next is requested. */
async function responseOutcome({ clients: [client], database }: SandboxService): Promise<Outcome> {
  const responses: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_UP_STARTS + STARTS; run += 1) {
    await delay(BETWEEN_STARTS_MS);
    const { taskId, ms } = await postStart(client, null);
    await untilReady(client, [taskId]);
    await removeSandboxes(client, database);
    const live = await client.expectOk({ method: 'GET', path: '/health/live' });
    if (run > WARM_UP_STARTS) {
      responses.push(ms);
      nothing.push(live.ms);
    }
  }
  print(`  POST responds after ${spread(responses, 1)} ms, /health/live ${spread(nothing, 1)} ms`);
  const note = `x${(median(responses) / median(nothing)).toFixed(1)}`;
  const what = 'response of POST /app-conversations, median (and against /health/live)';
  return atMost(what, responses, MAX_RESPONSE_MS, { digits: 1, note });
}

/** Measures from the timestamp that the agent server gives an event of the agent to its arrival at a reader. */
async function streamOutcomes({
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
  return [
    atMost('first event of the agent on the stream, after it was written', first, MAX_EVENT_DELAY_MS.first),
    atMost('later events of the agent on the stream', later, MAX_EVENT_DELAY_MS.later),
  ];
}

/** How long the agent's messages took to arrive, milliseconds. */
function agentDelays({ events }: EventStream): number[] {
  return events.flatMap(({ data, at }) => {
    const isAgentMessage = jsonText(data, 'source') === 'agent' && jsonText(data, 'kind') === 'MessageEvent';
    const writtenAt = Date.parse(`${jsonText(data, 'timestamp')?.slice(0, 23)}Z`);
    return isAgentMessage ? [at - writtenAt] : [];
  });
}

async function concurrentOutcomes(service: SandboxService): Promise<Outcome[]> {
  const [client] = service.clients;
  const each: number[] = [];
  for (let round = 1; round <= ALONE_STARTS; round += 1) {
    each.push(await readyAfter(service, client, FIRST_MESSAGE));
    await delay(BETWEEN_STARTS_MS);
  }
  const { ms, conversations } = await startAtOnce(client, CONCURRENT_STARTS, FIRST_MESSAGE);
  await untilFinished(client, conversations);
  await delay(UNTIL_COLLECTED_MS);
  const trees = await Promise.all(
    conversations.map(async ({ sandboxId }) => treeMemory(await programPid(service, sandboxId))),
  );
  const known = trees.filter((tree) => tree !== null).map(({ pss }) => pss);
  print(`  memory of the service: RSS ${residentMemoryMb(service.pid).toFixed(0)} MB`);
  await removeSandboxes(client, service.database);
  const perStart = ms / CONCURRENT_STARTS / median(each);
  const memory = 'memory of a sandbox 12 s after its run, its share of common pages (PSS)';
  return [
    atMost('one conversation alone is READY, from its request', each, MAX_READY_MS),
    {
      what: `${CONCURRENT_STARTS} conversations started at once are READY (and per start, against one alone)`,
      target: `all, <= ${MAX_CONCURRENT_MS / 1000} s`,
      measured: `${conversations.length} after ${(ms / 1000).toFixed(1)} s (x${perStart.toFixed(2)})`,
      reached: conversations.length === CONCURRENT_STARTS && ms <= MAX_CONCURRENT_MS,
    },
    ...(known.length === 0 ? [] : [atMost(memory, known, MAX_SANDBOX_MB, { unit: 'MB' })]),
  ];
}
