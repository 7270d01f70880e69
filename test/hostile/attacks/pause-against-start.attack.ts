import { setTimeout as wait } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { until } from '../../support/until.js';
import { type Attack, onOneMachine, held } from '../attack.js';

/** Milliseconds after the request for a sandbox. */
const MOMENTS = [0, 20, 80, 200, 400, 700, 1_200];

export const pauseAgainstStart: Attack = {
  name: 'pause-against-start',
  finding: 'not tried',
  what: 'Bob pauses sandboxes at any moment of their start, resumes them, and deletes others in their start.',
  expected: onOneMachine(held('each ends paused or removed, with no process left, and resumes')),
  run: async (world) => {
    const { client } = world.bob;
    const paused: string[] = [];
    const removed: string[] = [];
    for (const [index, moment] of MOMENTS.entries()) {
      const id = jsonText(await client.post('/api/v1/sandboxes', {}), 'id') ?? '';
      await wait(moment);
      if (index % 3 === 2) {
        await client.send('DELETE', `/api/v1/sandboxes/${id}?sandbox_id=${id}`);
        removed.push(id);
      } else {
        await client.send('POST', `/api/v1/sandboxes/${id}/pause`);
        paused.push(id);
      }
    }
    await Promise.all(paused.map((id) => client.sandboxIn(id, 'PAUSED')));
    await Promise.all(removed.map((id) => client.sandboxIn(id, 'MISSING')));
    for (const id of [...paused, ...removed]) {
      await until(async () => !(await world.runs(id)));
    }
    for (const id of paused) {
      await client.post(`/api/v1/sandboxes/${id}/resume`);
      await client.sandboxIn(id, 'RUNNING');
    }
    await Promise.all(paused.map((id) => client.remove(`/api/v1/sandboxes/${id}?sandbox_id=${id}`)));
    await Promise.all(paused.map((id) => client.sandboxIn(id, 'MISSING')));
    return {
      held: true,
      seen: `${paused.length} paused in their start and resumed, ${removed.length} removed in theirs, no process left`,
    };
  },
};
