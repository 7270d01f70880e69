import { WebSocket } from 'ws';
import { until } from '../../support/until.js';
import { shell } from '../../system/journeys/support/script.js';
import { type Attack, everywhere, held } from '../attack.js';

const DRAFT = 'the-words-of-alice-51873';

interface Listening {
  /** `open`, or why it was refused. */
  outcome: string;
  heard: string;
}

export const socketsOfAnother: Attack = {
  name: 'sockets-of-another',
  finding: 'held',
  what: "Bob opens WebSockets to Alice's agent server, and to her conversation at his own, with every key that he has.",
  expected: everywhere(held('refused, or closed without a word of hers')),
  run: async ({ alice, bob, url }) => {
    await alice.client.say(alice.conversationId, shell(`echo ${DRAFT}`));
    await alice.client.conversationIn(alice.conversationId, 'finished');
    const base = url.replace(/^http/, 'ws');
    const own = await bob.sessionKey();
    const at = (sandbox: string, path: string, key: string) =>
      `${base}/api/v1/sandboxes/${sandbox}/agent-server/sockets/${path}?session_api_key=${key}&resend_all=true`;
    const events = `events/${alice.conversationId}`;
    const addresses = [own, bob.client.key, '']
      .flatMap((key) => [at(alice.sandboxId, events, key), at(alice.sandboxId, 'bash-events', key)])
      .concat(at(bob.sandboxId, events, own));
    const sockets = addresses.map((address) => listen(address, own));
    await until(() => sockets.every(({ listening }) => listening.outcome !== 'no answer'));
    // She comes later, and hears her conversation.
    const control = listen(at(alice.sandboxId, events, await alice.sessionKey()), '');
    await until(() => control.listening.heard.includes(DRAFT));
    [control, ...sockets].forEach(({ end }) => end());
    const results = sockets.map(({ listening }) => listening);
    const heard = results.filter(({ heard: words }) => words.includes(DRAFT)).length;
    return {
      held:
        heard === 0 &&
        results.slice(0, -1).every(({ outcome, heard: words }) => outcome !== 'open' || words === ''),
      seen: `of ${results.length} sockets ${heard} told him of Alice; ${[...new Set(results.map(({ outcome }) => outcome))].join(', ')}`,
    };
  },
};

/** Opens a socket, says the key in the first frame as clients may, and listens. */
function listen(address: string, key: string): { listening: Listening; end: () => void } {
  const socket = new WebSocket(address);
  const listening: Listening = { outcome: 'no answer', heard: '' };
  socket.on('open', () => {
    listening.outcome = 'open';
    if (key !== '') {
      socket.send(JSON.stringify({ type: 'auth', session_api_key: key }));
    }
  });
  socket.on('message', (data: Buffer) => {
    listening.heard += data.toString('utf8');
  });
  socket.on('close', (code) => {
    listening.outcome = listening.outcome.startsWith('refused') ? listening.outcome : `closed ${code}`;
  });
  socket.on('unexpected-response', (_, response) => {
    listening.outcome = `refused ${response.statusCode ?? 0}`;
    socket.terminate();
  });
  socket.on('error', () => socket.terminate());
  return { listening, end: () => socket.removeAllListeners('close').terminate() };
}
