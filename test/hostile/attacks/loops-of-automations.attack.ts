import { randomUUID } from 'node:crypto';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { onMessage } from '../../system/journeys/support/script.js';
import { until } from '../../support/until.js';
import { type Attack, held } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const RUNS_A_DAY = 5;
const TRIES = 30;
const MAX_GROWTH_MIB = 150;
const OVER = ['COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED'];

export const loopsOfAutomations: Attack = {
  name: 'loops-of-automations',
  finding: 'not tried',
  timed: true,
  what: 'Each run of one automation of Bob comments, which starts the other one, whose comment starts the first; and the agent of a run starts agents with its own prompt, each of which does the same.',
  expected: {
    process: held(
      'both stop at the runs of a day, one runs at a time, agents are three deep, and Alice is answered meanwhile',
    ),
  },
  run: (world) => world.apart({}, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const bob = await EventSender.create(world, world.bob.client);
  const limits = { max_runs_per_day: RUNS_A_DAY, concurrency: { limit: 1, when_busy: 'queue' } };
  const waitFor = (author: string) => ({
    trigger: { type: 'event', source: 'github', on: '*', filter: `comment.by == '${author}'` },
  });
  const both = [
    await bob.automation({ prompt: 'comment as ping', ...waitFor('pong'), ...limits }),
    await bob.automation({ prompt: 'comment as pong', ...waitFor('ping'), ...limits }),
  ];
  for (const author of ['ping', 'pong']) {
    onMessage(`comment as ${author}`, async () => {
      // The host tells of the comment, twice.
      await Promise.all([1, 2].map(() => bob.deliver({ comment: { by: author } })));
      return call('finish', { message: 'I have answered.' });
    });
  }
  const vitals = Vitals.watch(world);
  await bob.deliver({ comment: { by: 'pong' } });
  let highest = 0;
  const seen = async () => {
    const runs = await Promise.all(both.map((id) => bob.runs(id)));
    highest = Math.max(
      highest,
      ...runs.map((each) => each.filter(({ status }) => status === 'RUNNING').length),
    );
    return runs;
  };
  await until(async () => (await seen()).every((runs) => begun(runs) >= RUNS_A_DAY && isOver(runs)));
  for (let count = 0; count < TRIES; count += 1) {
    await bob.deliver({ comment: { by: count % 2 === 0 ? 'ping' : 'pong' } });
  }
  const counts = (await seen()).map((runs) => [begun(runs), runs.length] as const);
  const deepest = await depthOfAgents(world);
  const others = await vitals.end(MAX_GROWTH_MIB);
  return {
    held:
      others.held &&
      highest === 1 &&
      deepest.refused &&
      counts.every(([made, rows]) => made === RUNS_A_DAY && rows <= 2 * RUNS_A_DAY),
    seen: `${counts.map(([made, rows]) => `${made} runs of ${RUNS_A_DAY} a day in ${rows} rows`).join(', ')}, ${highest} at a time; ${deepest.started} agents below the first, then refused: ${deepest.refused}; ${others.seen}`,
  };
}

function begun(runs: readonly { status: string }[]): number {
  return runs.filter(({ status }) => status !== 'SKIPPED').length;
}

function isOver(runs: readonly { status: string }[]): boolean {
  return runs.every(({ status }) => OVER.includes(status));
}

/** Each agent of a run starts one more, through the tool server. */
async function depthOfAgents({ bob }: HostileWorld): Promise<{ started: number; refused: boolean }> {
  let parent = bob.conversationId;
  for (let started = 0; started < 10; started += 1) {
    const { body } = await bob.send(
      'POST',
      '/mcp',
      {
        jsonrpc: '2.0',
        id: randomUUID(),
        method: 'tools/call',
        params: { name: 'start_conversation', arguments: { message: 'do it again' } },
      },
      { Accept: 'application/json', 'X-Slipway-Conversation': parent },
    );
    const answer = Object(Object(body).result);
    if (answer.isError === true) {
      return { started, refused: JSON.stringify(answer).includes('conversation_limit') };
    }
    parent = String(Object(answer.structuredContent).conversation_id);
    const id = parent;
    await until(async () => {
      const { body: found } = await bob.send('GET', `/api/v1/app-conversations?ids=${id}`);
      return Array.isArray(found) && Object(found[0]).execution_status === 'finished';
    });
  }
  return { started: 10, refused: false };
}
