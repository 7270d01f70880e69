import type { Client } from 'pg';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { deliver, issueLabeledDelivery } from '../test/fakes/fake-github.webhooks.js';
import type { FakeIssue } from '../test/fakes/fake-world.js';
import { sampleWorld } from '../test/fakes/sample-world.js';
import { untilFinished, untilReady, withConversations } from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import { atMost, type Outcome, percentile, print, spread } from './support/report.js';
import { removeSandboxes } from './support/sandbox-service.js';

const EVENTS = 50;
const WARM_UPS = 5;
const MAX_START_MS = 1_000;
const TASK = 'SELECT start_task_ids[1] AS id FROM automation_runs WHERE id = $1';

/** Measures from the sending of a signed event to the start task that it causes, one event at a time. */
export async function benchAutomations(): Promise<Outcome[]> {
  return await withConversations({}, async ({ clients: [client], database }) => {
    const post = (path: string, body: object) =>
      client.json({ method: 'POST', path: `/api/automation/v1/${path}`, body: JSON.stringify(body) });
    const hook = await post('webhooks', { name: 'Bench', source: 'github' });
    const webhook = {
      url: jsonText(hook, 'webhook_url') ?? '',
      secret: jsonText(hook, 'webhook_secret') ?? '',
    };
    await post('preset/prompt', {
      name: 'Bench',
      prompt: 'Fix: {{ event.issue.title }}',
      // No host is there to ask who may write.
      trigger: {
        type: 'event',
        source: 'github',
        on: 'issues.labeled',
        filter: "label.name == 'agent'",
        from: 'anyone',
      },
      secret_names: [],
      git: 'none',
      max_budget_per_run: null,
      max_budget_per_month: null,
      concurrency: { limit: 20 },
    });
    const starts: number[] = [];
    for (let number = 1; number <= WARM_UPS + EVENTS; number += 1) {
      const issue: FakeIssue = { repository: 'bench/app', number, title: 'It is broken', updatedAt: '' };
      const world = sampleWorld();
      // One account may cause ten runs a day.
      world.user.login = `person-${number}`;
      const event = issueLabeledDelivery(world, issue, 'agent');
      const sentAt = performance.now();
      const response: unknown = await (await deliver(webhook, event)).json();
      const taskId = await startTaskOf(database, jsonText(jsonList(response, 'matched')[0], 'run_id'));
      const startMs = performance.now() - sentAt;
      await untilFinished(client, await untilReady(client, [taskId]));
      await removeSandboxes(client, database);
      if (number > WARM_UPS) {
        starts.push(startMs);
      }
    }
    print(`  start task after ${spread(starts, 0)} ms`);
    const p95 = percentile(
      starts.toSorted((a, b) => a - b),
      0.95,
    );
    return [atMost('signed event to its start task, p95 of 50', p95, MAX_START_MS)];
  });
}

/** Waits until the run has started its conversation. */
async function startTaskOf(database: Client, runId: string | null): Promise<string> {
  let taskId: string | null = null;
  await untilTrue(async () => {
    const { rows } = await database.query<{ id: string | null }>(TASK, [runId]);
    taskId = rows[0]?.id ?? null;
    return taskId !== null;
  }, 'the start of a run');
  return taskId ?? '';
}
