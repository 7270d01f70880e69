import { type Attack, onOneMachine, held } from '../attack.js';

const BOMB = 'bomb() { bomb & bomb & wait; }; bomb';
const SLOW_MS = 5_000;

export const forkBomb: Attack = {
  name: 'fork-bomb',
  finding: 'not tried',
  timed: true,
  what: 'A tool of Bob starts processes without end.',
  expected: onOneMachine(held('the service and Alice go on, and the sandbox can be paused and removed')),
  run: async (world) => {
    const { alice, bob } = world;
    await bob.agentServer('POST', '/api/bash/start_bash_command', { command: BOMB, timeout: 120 });
    const pulses: (number | null)[] = [];
    const works: number[] = [];
    for (let round = 0; round < 10; round += 1) {
      const before = performance.now();
      const { output } = await alice.sh('echo works');
      works.push(output.trim() === 'works' ? performance.now() - before : Number.POSITIVE_INFINITY);
      pulses.push(await world.pulse());
    }
    await world.pauseWhole(bob);
    await bob.renew();
    const slowest = Math.max(...works);
    const pulse = Math.max(...pulses.map((ms) => ms ?? Number.POSITIVE_INFINITY));
    return {
      held: slowest < SLOW_MS && pulse < SLOW_MS && (await bob.isWell()),
      seen: `Alice's commands take up to ${slowest.toFixed(0)} ms, the service answers within ${pulse.toFixed(0)} ms, and the sandbox was paused and removed`,
    };
  },
};
