import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { text } from '../../system/journeys/support/api-client.js';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const KEYS = '/api/v1/api-keys';
const AUTOMATIONS = '/api/automation/v1';
const ENDPOINTS = '/api/v1/webhook-endpoints';

export const stolenKey: Attack = {
  name: 'stolen-key',
  finding: 'not tried',
  what: 'With a key of Alice that he stole, Bob makes an automation, a webhook, an endpoint and another key; then she revokes the stolen one.',
  expected: ofService(
    held('what the key made rests when it is revoked with that, and a key that only reads makes none'),
  ),
  run: attack,
};

async function attack({ alice: { client: alice } }: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const stolen = await alice.post(KEYS, { name: 'stolen' });
  const headers = { 'X-Session-API-Key': text(stolen, 'key') };
  const make = async (path: string, body: object): Promise<unknown> => {
    const answer = await alice.send('POST', path, body, headers);
    if (answer.status !== 201) {
      throw new Error(`POST ${path} was answered with ${answer.status}`);
    }
    return answer.body;
  };
  const trigger = { type: 'cron', schedule: '0 9 * * *' };
  const automation = await make(`${AUTOMATIONS}/preset/prompt`, {
    name: 'Stays',
    prompt: 'say hello',
    trigger,
  });
  const webhook = await make(`${AUTOMATIONS}/webhooks`, { name: 'Stays', source: 'stays' });
  const endpoint = await make(ENDPOINTS, { url: 'https://collector.example.com/stays' });
  const key = await make(KEYS, { name: 'stays' });
  const narrow = await make(KEYS, { name: 'reader', scopes: ['read'] });
  const wide = await alice.send(
    'POST',
    KEYS,
    { name: 'more', scopes: ['read', 'settings'] },
    { 'X-Session-API-Key': text(narrow, 'key') },
  );

  await alice.remove(`${KEYS}/${text(stolen, 'id')}?made=pause`);

  const left: string[] = [];
  const places = {
    automation: [AUTOMATIONS, automation],
    webhook: [`${AUTOMATIONS}/webhooks`, webhook],
    endpoint: [ENDPOINTS, endpoint],
  } as const;
  for (const [name, [path, made]] of Object.entries(places)) {
    const shown = await alice.get(`${path}/${text(made, 'id')}`);
    if (Object(shown).enabled === true) {
      left.push(name);
    }
    await alice.remove(`${path}/${text(made, 'id')}`);
  }
  const keys = await alice.get(KEYS);
  for (const made of [key, narrow]) {
    const shown = jsonList({ keys }, 'keys').find((each) => jsonText(each, 'id') === text(made, 'id'));
    if (jsonText(shown, 'revoked_at') === null) {
      left.push('key');
    }
  }
  return {
    held: left.length === 0 && wide.status === 403,
    seen: `at work after it was revoked: ${left.join(', ') || 'nothing'}; a reading key that asked for another key was answered with ${wide.status}`,
  };
}
