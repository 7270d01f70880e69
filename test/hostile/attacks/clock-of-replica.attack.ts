import { jsonText } from '@slipway/common/json-access.js';
import { until } from '../../support/until.js';
import { type Attack, ofService, held } from '../attack.js';

const SANDBOXES = 4;
/** A machine whose clock is an hour ahead, and is set back and forth while the service runs. */
const WRONG_CLOCK = `
const { now } = Date;
let ahead = 3600000;
Date.now = () => now() + ahead;
setInterval(() => { ahead = -ahead; }, 1500).unref();
`;

export const clockOfReplica: Attack = {
  name: 'clock-of-replica',
  finding: 'not tried',
  what: 'A second replica has a clock that jumps by hours while sandboxes are started and paused.',
  expected: ofService(held('leases go by the time of the database: each sandbox is started and paused once')),
  run: async (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const second = await apart.replica({
        nodeArgs: [`--import=data:text/javascript,${encodeURIComponent(WRONG_CLOCK)}`],
      });
      const owner = await apart.createUser();
      const ids = await Promise.all(
        Array.from({ length: SANDBOXES }, async (_none, index) => {
          const at = index % 2 === 0 ? owner : owner.at(second.url);
          const id = jsonText(await at.post('/api/v1/sandboxes', {}), 'id') ?? '';
          await owner.sandboxIn(id, 'RUNNING');
          return id;
        }),
      );
      await Promise.all(ids.map((id) => owner.post(`/api/v1/sandboxes/${id}/pause`)));
      await Promise.all(ids.map((id) => owner.sandboxIn(id, 'PAUSED')));
      const lines = (): string[] => [...apart.service.log, ...second.log];
      const count = (message: string, id: string): number =>
        lines().filter((line) => line.includes(`"${message}"`) && line.includes(id)).length;
      // PAUSED is said while the last processes end.
      await until(() => ids.every((id) => count('sandbox paused', id) > 0));
      const started = ids.map((id) => count('sandbox started', id));
      const paused = ids.map((id) => count('sandbox paused', id));
      const errors = lines().filter((line) => line.includes('"level":"error"')).length;
      return {
        held: [...started, ...paused].every((times) => times === 1) && errors === 0,
        seen: `starts: ${started.join(' ')}, pauses: ${paused.join(' ')}, ${errors} errors in the logs`,
      };
    }),
};
