import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { EventSource } from '../../support/event-source.js';
import { SignInBrowser } from '../../support/sign-in-browser.js';
import { text } from '../../system/journeys/support/api-client.js';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

/** A busy machine takes as long for what a quiet one does within a second. */
const PATIENCE_MS = 60_000;
const POLL_MS = 200;

/** What may be open to Bob, and whether it is. */
type Door = [name: string, isOpen: () => Promise<boolean> | boolean];

export const disabledUser: Attack = {
  name: 'disabled-user',
  finding: 'held',
  what: 'Bob, whom an administrator disables while his sandbox goes on, keeps his WebSockets and streams open at two replicas, and opens others with every key and session that he has.',
  expected: ofService(held('what is open ends, and nothing opens again')),
  run: (world) => world.apart({}, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { bob, admin } = world;
  const urls = [world.url, (await world.replica()).url];
  const browser = new SignInBrowser(world.url);
  await browser.signInWith(bob.client.key);
  const spare = await bob.client.post('/api/v1/api-keys', { name: 'spare', scopes: ['read', 'run'] });
  const own = [
    { 'X-Session-API-Key': bob.client.key },
    { Authorization: `Bearer ${text(spare, 'key')}` },
    await browser.headers(),
  ];
  const ofSandbox = { 'X-Session-API-Key': await bob.sessionKey() };
  const sandbox = `/api/v1/sandboxes/${bob.sandboxId}`;
  const socket = async (url: string): Promise<WebSocket | null> => {
    const path = `${sandbox}/agent-server/sockets/events/${bob.conversationId}`;
    return opened(`${url.replace('http', 'ws')}${path}?session_api_key=${ofSandbox['X-Session-API-Key']}`);
  };
  const doors = urls.flatMap((url): Door[] => {
    const answers = (path: string, headers: Record<string, string>) => async (): Promise<boolean> =>
      (await fetch(`${url}${path}`, { headers })).ok;
    return [
      ...own.map((headers, index): Door => [`the API by key ${index}`, answers('/api/v1/users/me', headers)]),
      ['his agent server', answers(`${sandbox}/agent-server/alive`, ofSandbox)],
      ['secrets of his sandbox', answers(`${sandbox}/settings/secrets`, ofSandbox)],
      [
        'a WebSocket',
        async () => {
          const again = await socket(url);
          again?.terminate();
          return again !== null;
        },
      ],
    ];
  });
  const kept: Door[] = [];
  for (const url of urls) {
    const held = await socket(url);
    kept.push(['his WebSocket of before', () => held?.readyState === WebSocket.OPEN]);
    for (const headers of own) {
      const stream = await EventSource.connect(
        `${url}/api/v1/conversation/${bob.conversationId}/events/stream`,
        headers,
      );
      kept.push(['his stream of before', () => !stream.ended]);
    }
  }
  const all = [...kept, ...doors];
  if ((await openOf(all)).length < all.length) {
    throw new Error(`not even Bob gets in: ${(await openOf(all)).join(', ')}`);
  }
  const { user_id: id } = Object(await bob.client.get('/api/keys/current'));
  await admin.post(`/api/v1/users/${id}/disable?sandboxes=keep`);
  const deadline = performance.now() + PATIENCE_MS;
  while ((await openOf(all)).length > 0 && performance.now() < deadline) {
    await wait(POLL_MS);
  }
  const open = await openOf(all);
  return { held: open.length === 0, seen: `of ${all.length} doors open: ${open.join(', ') || 'none'}` };
}

async function openOf(doors: Door[]): Promise<string[]> {
  const found: string[] = [];
  for (const [name, isOpen] of doors) {
    if (await isOpen()) {
      found.push(name);
    }
  }
  return found;
}

/** Null where the service refuses it, or ends it before it says a word. */
async function opened(address: string): Promise<WebSocket | null> {
  const socket = new WebSocket(address);
  try {
    await once(socket, 'open');
    return socket;
  } catch {
    return null;
  }
}
