import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { type Attack, held } from '../attack.js';

const PATHS = ['/server_info', '/openapi.json', '/docs', '/health/ready', '/api/settings'];
const STRANGERS = ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:3000'];

export const foreignHostName: Attack = {
  name: 'foreign-host-name',
  finding: 14,
  what: "A page of a stranger has its own name resolve to this machine (DNS rebinding) and reads what needs no key, and what a key in the user's browser opens.",
  expected: { process: held('421 under every name that is not the own one') },
  run: async ({ url, bob }) => {
    const answers = await Promise.all(
      STRANGERS.flatMap((host) => PATHS.map(async (path) => statusOf(`${url}${path}`, host, bob.client.key))),
    );
    const own = await statusOf(`${url}/health/live`, 'localhost', bob.client.key);
    return {
      held: answers.every((status) => status === 421) && own === 200,
      seen: `${answers.length} requests: ${[...new Set(answers)].join(', ')}; under localhost ${own}`,
    };
  },
};

async function statusOf(url: string, host: string, key: string): Promise<number> {
  const outgoing = request(url, { headers: { Host: host, 'X-Session-API-Key': key }, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}
