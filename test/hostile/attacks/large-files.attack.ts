import { type Attack, everywhere, held } from '../attack.js';
import { Vitals } from '../support/vitals.js';

const MIB = 1024 * 1024;
const AT_ONCE = 8;

export const largeFiles: Attack = {
  name: 'large-files',
  finding: 7,
  timed: true,
  what: 'Bob reads a file of 120 MiB through the service, eight times at once, and one of 300 MiB.',
  expected: everywhere(held('files are sent as they are read; what is too large for a string is a 413')),
  run: async (world) => {
    const { bob } = world;
    const made = await bob.sh(
      `yes 'a line of "text"' | head -c ${120 * MIB} > large.txt && truncate -s ${300 * MIB} larger.txt && pwd`,
      60,
    );
    const folder = made.output.trim();
    const read = async (name: string): Promise<{ status: number; bytes: number }> => {
      const query = new URLSearchParams({ file_path: `${folder}/${name}` });
      const response = await fetch(
        `${world.url}/api/v1/app-conversations/${bob.conversationId}/file?${query.toString()}`,
        { headers: { 'X-Session-API-Key': bob.client.key } },
      );
      let bytes = 0;
      for await (const chunk of response.body ?? []) {
        bytes += chunk.length;
      }
      return { status: response.status, bytes };
    };
    const vitals = Vitals.watch(world);
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => read('large.txt')));
    const seconds = (performance.now() - began) / 1000;
    const larger = await read('larger.txt');
    const state = await vitals.end(400);
    await bob.sh('rm -f large.txt larger.txt');
    const whole = answers.filter(({ status, bytes }) => status === 200 && bytes > 120 * MIB).length;
    return {
      held: state.held && whole === AT_ONCE && larger.status === 413,
      seen: `${whole} of ${AT_ONCE} whole in ${seconds.toFixed(1)} s, then ${larger.status}; ${state.seen}`,
    };
  },
};
