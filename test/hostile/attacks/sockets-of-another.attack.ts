import { WebSocket } from 'ws';
import { shell } from '../../system/journeys/support/script.js';
import { type Attack, everywhere, held } from '../attack.js';

const DRAFT = 'the-words-of-alice-51873';
const PATIENCE_MS = 3_000;

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
    const results = await Promise.all(addresses.map(async (address) => listen(address, own)));
    const heard = results.filter(({ heard: words }) => words.includes(DRAFT)).length;
    const control = await listen(at(alice.sandboxId, events, await alice.sessionKey()), '');
    if (!control.heard.includes(DRAFT)) {
      throw new Error('not even Alice hears her conversation');
    }
    return {
      held:
        heard === 0 &&
        results.slice(0, -1).every(({ outcome, heard: words }) => outcome !== 'open' || words === ''),
      seen: `of ${results.length} sockets ${heard} told him of Alice; ${[...new Set(results.map(({ outcome }) => outcome))].join(', ')}`,
    };
  },
};

/** Opens a socket, says the key in the first frame as clients may, and listens for a while or until it is closed. */
async function listen(address: string, key: string): Promise<Listening> {
  return new Promise((resolve) => {
    const socket = new WebSocket(address);
    let heard = '';
    let outcome = 'no answer';
    const end = () => {
      clearTimeout(timer);
      socket.terminate();
      resolve({ outcome, heard });
    };
    const timer = setTimeout(end, PATIENCE_MS);
    socket.on('open', () => {
      outcome = 'open';
      if (key !== '') {
        socket.send(JSON.stringify({ type: 'auth', session_api_key: key }));
      }
    });
    socket.on('message', (data: Buffer) => {
      heard += data.toString('utf8');
    });
    socket.on('close', (code) => {
      outcome = `closed ${code}`;
      end();
    });
    socket.on('unexpected-response', (_, response) => {
      outcome = `refused ${response.statusCode ?? 0}`;
      end();
    });
    socket.on('error', () => end());
  });
}
