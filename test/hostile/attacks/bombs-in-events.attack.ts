import { gzipSync } from 'node:zlib';
import { type Attack, held } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const MIB = 1_048_576;
const MAX_GROWTH_MIB = 200;
const ROUNDS = 10;
const HALF = 'a'.repeat(250_000);

/** Expressions whose cost grows with each character, or with the event. */
const BOMBS = [
  '[@,@,@,@,@,@,@,@]|[*].[@,@,@,@,@,@,@,@]|[]|[*].[@,@,@,@,@,@,@,@]|[]|[*].[@,@,@,@,@,@,@,@]|[]|[?many]|[0].b',
  `[@]${' | [@, @][]'.repeat(60)}`,
  `${'to_string('.repeat(60)}[@]${')'.repeat(60)}`,
  `${'!'.repeat(950)}many`,
  'contains(text, part)',
  'icontains(text, part)',
  `glob(text, '${'*a'.repeat(400)}b')`,
  `${'length(text) == length(text) && '.repeat(30)}length(text)`,
  `{${Array.from({ length: 120 }, (_none, index) => `a${index}: @`).join(',')}} | values(@)[?many]`,
  'join(part, keys(many))',
];
const EVENT = {
  many: Object.fromEntries(Array.from({ length: 20_000 }, (_none, index) => [`k${index}`, index])),
  text: 'a'.repeat(200_000),
  part: `${'a'.repeat(60_000)}b${'a'.repeat(60_000)}`,
};

export const bombsInEvents: Attack = {
  name: 'bombs-in-events',
  finding: 'not tried',
  timed: true,
  what: 'Bob has events judged by expressions that grow without end, and sends bodies that are deep, wide, packed and larger than git hosts send.',
  expected: {
    process: held(
      'each expression is given up within milliseconds, each body is refused, and Alice notices neither',
    ),
  },
  run: (world) => world.apart({ nodeArgs: ['--max-old-space-size=256'] }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const bob = await EventSender.create(world, world.bob.client);
  for (const bomb of BOMBS) {
    await bob.automation({ trigger: { type: 'event', source: 'github', on: '*', filter: bomb } });
  }
  const prompt = BOMBS.slice(0, 8)
    .map((bomb) => (/[{}]/.test(bomb) ? '' : `{{ event.${bomb} }}`))
    .join(' ');
  await bob.automation({ prompt });
  const vitals = Vitals.watch(world);
  const judged: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    judged.push((await bob.deliver(EVENT)).status);
  }
  const refused: number[] = [];
  for (const [body, headers = {}] of bodies()) {
    const response = await bob.send(body, {
      'X-Hub-Signature-256': `sha256=${bob.digest(body)}`,
      ...headers,
    });
    refused.push(response.status);
    await response.arrayBuffer();
  }
  const others = await vitals.end(MAX_GROWTH_MIB);
  return {
    held:
      others.held &&
      judged.every((status) => status === 202) &&
      refused.every((status) => [401, 413, 422].includes(status)),
    seen: `${BOMBS.length} expressions: ${[...new Set(judged)].join(' ')}; ${refused.length} bodies: ${[...new Set(refused)].join(' ')}; ${others.seen}`,
  };
}

function bodies(): [Buffer, Record<string, string>?][] {
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  return [
    [Buffer.from(`${'['.repeat(MIB / 2 - 1)}${']'.repeat(MIB / 2 - 1)}`)],
    [Buffer.from('{"a":'.repeat(150_000) + '1' + '}'.repeat(150_000))],
    [Buffer.from(`[${'0,'.repeat(MIB / 2 - 2)}0]`)],
    [Buffer.from(`{"a":"${'x'.repeat(25 * MIB)}"}`)],
    [Buffer.from(`{${Array.from({ length: 100_000 }, (_none, index) => `"k${index}":1`).join(',')}}`)],
    [Buffer.from(`payload=${encodeURIComponent(`${'['.repeat(90_000)}${']'.repeat(90_000)}`)}`), form],
    [Buffer.from(`payload=${'%'.repeat(900_000)}`), form],
    [Buffer.from(`${'a=1&'.repeat(200_000)}payload=x`), form],
    [gzipSync(Buffer.alloc(64 * MIB, '[')), { 'Content-Encoding': 'gzip' }],
    [Buffer.from(`${HALF}${HALF}`)],
    [Buffer.alloc(MIB - 1, 0xff)],
    [Buffer.from('')],
  ];
}
