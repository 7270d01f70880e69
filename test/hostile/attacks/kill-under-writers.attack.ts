import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { type Attack, ofService, held } from '../attack.js';

const WRITERS = 4;
const ROUNDS = 2;
const ENOUGH = 25;

export const killUnderWriters: Attack = {
  name: 'kill-under-writers',
  finding: 'held',
  what: 'The service is killed while four users write secrets, twice.',
  expected: ofService(held('what was acknowledged is there after the restart')),
  run: async (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const users = await Promise.all(
        Array.from({ length: WRITERS }, async () => ({
          client: await apart.createUser(),
          kept: new Set<string>(),
        })),
      );
      for (let round = 0; round < ROUNDS; round += 1) {
        const enough = Promise.withResolvers<void>();
        let acknowledged = 0;
        const writing = users.map(async ({ client, kept }, writer) => {
          try {
            for (let turn = 0; ; turn += 1) {
              const name = `R${round}_W${writer}_${turn}`;
              const { status } = await client.send('POST', '/api/secrets', { name, value: name });
              if (status === 201) {
                kept.add(name);
                acknowledged += 1;
              }
              if (acknowledged >= ENOUGH) {
                enough.resolve();
              }
            }
          } catch {
            // The service is gone: what was not acknowledged may be lost.
          }
        });
        await enough.promise;
        await apart.restart('SIGKILL');
        await Promise.all(writing);
      }
      let missing = 0;
      let total = 0;
      for (const { client, kept } of users) {
        const stored = jsonList(await client.get('/api/secrets'), 'custom_secrets');
        const names = new Set(stored.map((secret) => jsonText(secret, 'name')));
        total += kept.size;
        missing += [...kept].filter((name) => !names.has(name)).length;
      }
      return { held: missing === 0 && total > 0, seen: `${total} acknowledged, ${missing} missing` };
    }),
};
