import { createHmac } from 'node:crypto';
import { type Attack, held } from '../attack.js';
import { EventSender } from '../support/event-sender.js';

const EVENT = Buffer.from(JSON.stringify({ action: 'labeled', issue: { title: 'caf\u00E9' } }));
const OWN_SOURCE = 'tracker';
const SOURCES = ['github', 'gitlab', 'bitbucket', 'bitbucket_data_center', OWN_SOURCE];
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

type Headers = Record<string, string>;

export const forgedEvents: Attack = {
  name: 'forged-events',
  finding: 'not tried',
  what: "Bob sends events to Alice's webhooks with every signature that he can make: with his secret, other algorithms, other bytes, and none.",
  expected: { process: held('401 for each, as for what does not exist, and no event of Alice is stored') },
  run: async (world) => {
    const automations: [EventSender, string][] = [];
    const wrong: string[] = [];
    const answers = new Set<string>();
    let tried = 0;
    for (const source of SOURCES) {
      const alice = await EventSender.create(world, world.alice.client, source);
      const bob = await EventSender.create(world, world.bob.client, source);
      automations.push([alice, await alice.automation({ trigger: { type: 'event', source, on: '*' } })]);
      for (const [name, headers, body = EVENT, url = alice.url] of forgeries(alice, bob)) {
        const response = await alice.send(body, headers, url);
        const { status } = response;
        const text = await response.text();
        tried += 1;
        if (status === 431) {
          continue;
        }
        answers.add(text.replace(/"request_id":"[^"]*"/, ''));
        if (status !== 401) {
          wrong.push(`${source}, ${name}: ${status}`);
        }
      }
    }
    const made = await Promise.all(automations.map(([sender, id]) => sender.runs(id)));
    const [row] = await world.query('SELECT count(*)::int AS count FROM automation_events', []);
    return {
      held: wrong.length === 0 && answers.size === 1 && made.flat().length === 0 && row?.['count'] === 0,
      seen:
        wrong.slice(0, 5).join('; ') ||
        `${tried} forged events at ${SOURCES.length} sources: ${answers.size} answer, ${String(row?.['count'])} stored`,
    };
  },
};

function forgeries(alice: EventSender, bob: EventSender): [string, Headers, Buffer?, string?][] {
  const own = bob.digest(EVENT);
  const utf16 = alice.digest(Buffer.from(EVENT.toString('utf8'), 'utf16le'));
  const now = String(Math.floor(Date.now() / 1000));
  const old = String(Math.floor(Date.now() / 1000) - 3_600);
  const standard = (timestamp: string, secret: string): Headers => ({
    'Webhook-Id': 'one',
    'Webhook-Timestamp': timestamp,
    'Webhook-Signature': `v1,${createHmac('sha256', secret).update(`one.${timestamp}.`).update(EVENT).digest('base64')}`,
  });
  const right = alice.digest(EVENT);
  const unknown = alice.url.replace(/[0-9a-f-]{36}/, UNKNOWN);
  return [
    ['nothing', {}],
    ['empty', everywhere('')],
    ["Bob's secret", everywhere(`sha256=${own}`)],
    ["Bob's secret as the token", everywhere(bob.secret)],
    ["Alice's secret in another case", { 'X-Gitlab-Token': alice.secret.toUpperCase() }],
    ['SHA-1', everywhere(`sha1=${alice.digest(EVENT, 'sha1')}`)],
    ['SHA-1 that says SHA-256', everywhere(`sha256=${alice.digest(EVENT, 'sha1')}`)],
    ['SHA-512', everywhere(`sha512=${alice.digest(EVENT, 'sha512')}`)],
    ['half of the digest', everywhere(`sha256=${right.slice(0, 32)}`)],
    ['the digest and more', everywhere(`sha256=${right}00`)],
    ['the digest twice', everywhere(`sha256=${own}, sha256=${right}`)],
    ['the digest in base64', everywhere(`sha256=${Buffer.from(right, 'hex').toString('base64')}`)],
    ['a long header', everywhere('v1,x '.repeat(1_500))],
    ['a header that is too long', { 'X-Hub-Signature-256': 'a'.repeat(100_000) }],
    ['of the text in another encoding', everywhere(`sha256=${utf16}`)],
    ['of other bytes', everywhere(`sha256=${right}`), Buffer.concat([EVENT, Buffer.from(' ')])],
    ['of the text in Latin 1', everywhere(`sha256=${right}`), Buffer.from(EVENT.toString('utf8'), 'latin1')],
    ['of nothing', everywhere(`sha256=${alice.digest(Buffer.alloc(0))}`)],
    ['an empty secret', everywhere(`sha256=${bob.digest(EVENT, 'sha256', '')}`)],
    ["a standard one with Bob's secret", standard(now, bob.secret)],
    ['a standard one of an hour ago', standard(old, alice.secret)],
    ['a standard one without a time', standard('', alice.secret)],
    ["Alice's own, at an organization that does not exist", everywhere(`sha256=${right}`), EVENT, unknown],
    [
      "Alice's own, as that of one repository",
      { ...everywhere(`sha256=${right}`), 'X-Gitlab-Token': alice.secret },
      EVENT,
      `${alice.url}?repository=octo/app`,
    ],
    ["Alice's own, at a source that does not exist", everywhere(`sha256=${right}`), EVENT, `${alice.url}x`],
    [
      "Alice's own, at Bob's webhook",
      { ...everywhere(`sha256=${right}`), 'X-Gitlab-Token': alice.secret },
      EVENT,
      bob.url,
    ],
  ];
}

/** Each source looks at its own. */
function everywhere(signature: string): Headers {
  return Object.fromEntries(
    ['X-Hub-Signature-256', 'X-Hub-Signature', 'X-Signature-256', 'X-Gitlab-Token'].map((name) => [
      name,
      signature,
    ]),
  );
}
