import { type Attack, everywhere, held } from '../attack.js';

/** Names that every object has already, or that change what it inherits. */
const NAMES = ['__proto__', 'constructor', 'prototype', 'toString'];

export const secretOfAnyName: Attack = {
  name: 'secret-of-any-name',
  finding: 13,
  what: 'Bob gives secrets the names of what every JavaScript object inherits.',
  expected: everywhere(held("each is a variable of his agent's tools, like any other")),
  run: async ({ bob }) => {
    for (const name of NAMES) {
      await bob.client.post('/api/secrets', { name, value: `value of ${name}` });
    }
    // Values are masked in events; their lengths are not.
    const shown = await bob.throughAgent(
      NAMES.map((name) => `echo "${name}=$(printenv ${name} | wc -c)"`).join('; '),
    );
    await Promise.all(NAMES.map(async (name) => bob.send('DELETE', `/api/secrets/${name}`)));
    // With the line break of printenv.
    const arrived = NAMES.filter((name) => shown.includes(`${name}=${`value of ${name}\n`.length}`));
    return {
      held: arrived.length === NAMES.length,
      seen: `in the terminal: ${arrived.join(', ') || 'none'}`,
    };
  },
};
