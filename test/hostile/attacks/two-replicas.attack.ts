import { jsonText } from '@slipway/common/json-access.js';
import { type Attack, ofService, held } from '../attack.js';

const REPETITIONS = 12;
const SANDBOXES = 4;

export const twoReplicas: Attack = {
  name: 'two-replicas',
  finding: 'not tried',
  what: 'Bob sends one request to two replicas many times at once, and starts, pauses and resumes through both.',
  expected: ofService(
    held('one key makes one conversation, and each sandbox is worked on by one replica at a time'),
  ),
  run: async (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const second = await apart.replica();
      const both = [apart.bob.client, apart.bob.client.at(second.url)];
      const through = (index: number) => both[index % 2] ?? apart.bob.client;
      const answers = await Promise.all(
        Array.from({ length: REPETITIONS }, (_none, index) =>
          through(index).send('POST', '/api/v1/app-conversations', {}, { 'Idempotency-Key': 'one-of-bob' }),
        ),
      );
      const statuses = new Set(answers.map(({ status }) => status));
      const tasks = new Set(answers.map(({ body }) => jsonText(body, 'id')));
      const ids = await Promise.all(
        Array.from({ length: SANDBOXES }, async (_none, index) => {
          const id = jsonText(await through(index).post('/api/v1/sandboxes', {}), 'id') ?? '';
          await apart.bob.client.sandboxIn(id, 'RUNNING');
          return id;
        }),
      );
      // Both replicas are asked for the opposite at the same time.
      for (const word of ['pause', 'resume', 'pause'] as const) {
        await Promise.all(
          ids.flatMap((id) => both.map((client) => client.send('POST', `/api/v1/sandboxes/${id}/${word}`))),
        );
      }
      await Promise.all(ids.map((id) => apart.bob.client.post(`/api/v1/sandboxes/${id}/pause`)));
      await Promise.all(ids.map((id) => apart.bob.client.sandboxIn(id, 'PAUSED')));
      const lines = [...apart.service.log, ...second.log];
      const errors = lines.filter((line) => line.includes('"level":"error"'));
      const [first = ''] = ids;
      await apart.bob.client.post(`/api/v1/sandboxes/${first}/resume`);
      await apart.bob.client.sandboxIn(first, 'RUNNING');
      return {
        held: tasks.size === 1 && statuses.size === 1 && statuses.has(200) && errors.length === 0,
        seen: `${tasks.size} start of ${REPETITIONS} requests (${[...statuses].join(' ')}), ${errors.length} errors in the logs, all sandboxes paused, one resumed${errors[0] === undefined ? '' : `; ${errors[0].slice(0, 700)}`}`,
      };
    }),
};
