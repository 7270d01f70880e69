import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { until } from '../../support/until.js';
import type { ApiClient } from '../../system/journeys/support/api-client.js';
import { type Attack, ofService, held } from '../attack.js';

const SANDBOXES = 4;
const ROUNDS = 2;
const ASKED_TO_PAUSE = `SELECT id FROM sandboxes WHERE id = ANY($1) AND status IN ('PAUSING', 'PAUSED')`;

export const stallOfReplica: Attack = {
  name: 'stall-of-replica',
  finding: 'not tried',
  what: `A second replica is stopped for longer than its leases while it pauses ${SANDBOXES} sandboxes and starts a conversation, and goes on when another one has done that and the sandboxes run again.`,
  expected: ofService(
    held('it does nothing that another replica has done, and ends nothing that runs by then'),
  ),
  run: async (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const second = await apart.replica();
      const owner = await apart.createUser();
      const there = owner.at(second.url);
      const ids = await Promise.all(
        Array.from({ length: SANDBOXES }, async () => {
          const id = jsonText(await owner.post('/api/v1/sandboxes', {}), 'id') ?? '';
          await owner.sandboxIn(id, 'RUNNING');
          return id;
        }),
      );
      const lines = (): string[] => [...apart.service.log, ...second.log];
      const count = (message: string, id: string): number =>
        lines().filter((line) => line.includes(`"${message}"`) && line.includes(id)).length;
      const tasks: string[] = [];
      for (let round = 1; round <= ROUNDS; round += 1) {
        tasks.push(await there.start({ sandbox_id: ids[0] }));
        // A response after the stop may say that the connection to the database is gone.
        const pauses = Promise.allSettled(
          ids.slice(1).map(async (id) => there.post(`/api/v1/sandboxes/${id}/pause`)),
        );
        await until(async () => (await apart.query(ASKED_TO_PAUSE, [ids])).length === SANDBOXES - 1);
        process.kill(second.pid, 'SIGSTOP');
        try {
          await owner.startTaskEnd(tasks.at(-1) ?? '');
          for (const id of ids.slice(1)) {
            await owner.sandboxIn(id, 'PAUSED');
            await owner.post(`/api/v1/sandboxes/${id}/resume`);
            await owner.sandboxIn(id, 'RUNNING');
          }
        } finally {
          process.kill(second.pid, 'SIGCONT');
        }
        await pauses;
        // The work that it was in the middle of is over when what it is asked after that is done.
        await done(there);
        // What was stopped between a commit and its log line has written that by now.
        await until(() => ids.slice(1).every((id) => count('sandbox paused', id) >= round));
      }
      const states = await Promise.all(
        ids.map(async (id) => jsonText(await owner.sandbox(id), 'status') ?? 'gone'),
      );
      const ran = await Promise.all(ids.map(async (id) => apart.runs(id)));
      const conversations = jsonList(await owner.get('/api/v1/app-conversations/search'), 'items').length;
      const paused = ids.slice(1).map((id) => count('sandbox paused', id));
      const started = ids.map((id) => count('sandbox started', id));
      return {
        held:
          states.every((state) => state === 'RUNNING') &&
          ran.every(Boolean) &&
          conversations === ROUNDS &&
          paused.every((times) => times === ROUNDS) &&
          started.every((times, index) => times === (index === 0 ? 1 : ROUNDS + 1)),
        seen: `${states.join(' ')}, ${ran.filter(Boolean).length} of ${SANDBOXES} run; pauses: ${paused.join(' ')}, starts: ${started.join(' ')}; ${conversations} conversations of ${ROUNDS} starts`,
      };
    }),
};

/** Has a replica start and remove a sandbox. */
async function done(client: ApiClient): Promise<void> {
  const id = jsonText(await client.post('/api/v1/sandboxes', {}), 'id') ?? '';
  await client.sandboxIn(id, 'RUNNING');
  await client.remove(`/api/v1/sandboxes/${id}`);
}
