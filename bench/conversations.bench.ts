import { setTimeout as wait } from 'node:timers/promises';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonNumber, jsonText } from '../src/common/json-access.js';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { insertConversations, insertSandboxes } from './support/bench-rows.js';
import {
  postStart,
  type ReadyConversation,
  sayTo,
  untilFinished,
  untilReady,
} from './support/conversation-starts.js';
import { type EventStream, openEventStream } from './support/event-stream.js';
import type { Outcome } from './support/outcome.js';
import { pageOutcome } from './support/page-outcome.js';
import { print } from './support/print.js';
import { residentMemoryMb } from './support/resident-memory.js';
import { removeSandboxes, type SandboxService, withSandboxService } from './support/sandbox-service.js';
import { median, spread } from './support/statistics.js';
import { treeMemory } from './support/tree-memory.js';
import { untilTrue } from './support/until-true.js';

const STARTS = 12;
/** A service that has just been started still compiles itself. */
const WARM_UP_STARTS = 10;
/** What the removal of the last sandbox leaves to be done is over then. */
const PAUSE_MS = 500;
const MOST_ANSWER_MS = 15;
const TALKS = 4;
const MESSAGES = 4;
const MOST_EVENT_MS = 50;
const AT_ONCE = 20;
const SANDBOX_ROWS = 100;
const CONVERSATION_ROWS = 1_000;

/** Conversations in processes of this machine, with a script in the place of the model. */
export async function benchConversations(): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    return await withSandboxService({}, async (service) => {
      const [client, reader] = service.clients;
      const settings = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: llm.url };
      await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
      const answering = await answerOutcome(service);
      const streaming = await streamOutcome(service);
      const together = await togetherOutcome(service);
      await insertConversations(service, await insertSandboxes(service, SANDBOX_ROWS), CONVERSATION_ROWS);
      const search = '/api/v1/app-conversations/search?limit=100';
      return [
        answering,
        streaming,
        together,
        await pageOutcome(reader, 'a page of 100 out of 1,000 conversations', search),
      ];
    });
  } finally {
    await llm.close();
  }
}

/** Each alone: the last one is READY before the next is asked for. */
async function answerOutcome({ clients: [client], database }: SandboxService): Promise<Outcome> {
  const answers: number[] = [];
  const ready: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_UP_STARTS + STARTS; run += 1) {
    await wait(PAUSE_MS);
    const startedAt = performance.now();
    const { taskId, ms } = await postStart(client, null);
    await untilReady(client, [taskId]);
    const readyMs = performance.now() - startedAt;
    await removeSandboxes(client, database);
    const live = await client.expectOk({ method: 'GET', path: '/health/live' });
    if (run > WARM_UP_STARTS) {
      answers.push(ms);
      ready.push(readyMs);
      nothing.push(live.ms);
    }
  }
  print(
    `  POST answers after ${spread(answers, 1)} ms, /health/live ${spread(nothing, 1)} ms; READY after ${spread(ready, 0)} ms`,
  );
  return {
    what: 'POST /app-conversations answers, median (and against /health/live)',
    target: `<= ${MOST_ANSWER_MS} ms`,
    measured: `${spread(answers, 1)} ms (x${(median(answers) / median(nothing)).toFixed(1)})`,
    reached: median(answers) <= MOST_ANSWER_MS,
  };
}

/** From the time that the agent server wrote into an event of the agent to its arrival at a reader of the stream. */
async function streamOutcome({
  url,
  keys: [key],
  clients: [client],
  database,
}: SandboxService): Promise<Outcome> {
  const first: number[] = [];
  const later: number[] = [];
  for (let talk = 1; talk <= TALKS; talk += 1) {
    const { taskId } = await postStart(client, null);
    const [conversation] = await untilReady(client, [taskId]);
    if (!conversation) {
      throw new Error('a conversation that is READY cannot be read');
    }
    const stream = await openEventStream(`${url}/api/v1/conversation/${conversation.id}/events/stream`, key);
    for (let message = 1; message <= MESSAGES; message += 1) {
      await sayTo(client, conversation, 'Go on.');
      await untilTrue(() => agentDelays(stream).length >= message, 'an event of the agent');
    }
    const [delay = NaN, ...others] = agentDelays(stream);
    first.push(delay);
    later.push(...others);
    stream.close();
    await removeSandboxes(client, database);
  }
  print(
    `  events of the agent on the stream: first ${spread(first, 0)} ms, later ones ${spread(later, 0)} ms`,
  );
  return {
    what: 'first event of the agent on the stream, after it was written',
    target: `<= ${MOST_EVENT_MS} ms`,
    measured: `${spread(first, 0)} ms (later ones ${spread(later, 0)} ms)`,
    reached: median(first) <= MOST_EVENT_MS,
  };
}

/** How long the agent's messages took, milliseconds. */
function agentDelays({ events }: EventStream): number[] {
  return events.flatMap(({ data, at }) => {
    const isAnswer = jsonText(data, 'source') === 'agent' && jsonText(data, 'kind') === 'MessageEvent';
    const writtenAt = Date.parse(`${jsonText(data, 'timestamp')?.slice(0, 23)}Z`);
    return isAnswer ? [at - writtenAt] : [];
  });
}

async function togetherOutcome(service: SandboxService): Promise<Outcome> {
  const {
    clients: [client],
    database,
    dataDir,
    pid,
  } = service;
  const alone = await readyAfter(service, 1);
  await removeSandboxes(client, database);
  const { ms, conversations } = await readyAfter(service, AT_ONCE);
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
  return {
    what: `${AT_ONCE} conversations started at once are READY (and per start, against one alone)`,
    target: 'all',
    measured: `${conversations.length} after ${(ms / 1000).toFixed(1)} s (x${(ms / AT_ONCE / alone.ms).toFixed(2)} of ${(alone.ms / 1000).toFixed(1)} s)${known.length > 0 ? `, PSS ${median(known.map(({ pss }) => pss)).toFixed(0)} MB each` : ''}`,
    reached: conversations.length === AT_ONCE,
  };
}

async function readyAfter(
  { clients: [client] }: SandboxService,
  count: number,
): Promise<{ ms: number; conversations: ReadyConversation[] }> {
  const startedAt = performance.now();
  const tasks = await Promise.all(
    Array.from({ length: count }, () => postStart(client, 'Say that it is done.')),
  );
  const conversations = await untilReady(
    client,
    tasks.map(({ taskId }) => taskId),
  );
  return { ms: performance.now() - startedAt, conversations };
}
