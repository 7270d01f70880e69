import { jsonAt } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { reservedPort } from '../../support/reserved-port.js';
import { text } from '../../system/journeys/support/api-client.js';
import { message, onMessage } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const OWN = 'octo/lent';
const OTHER = 'octo/kept';
const CONVERSATIONS = '/api/v1/app-conversations';
const IN_OWN = { selected_repository: OWN, git_provider: 'github' };
const SCOPES = ['read', 'run', 'settings'];
/** In the repository that the key is not for. */
const KEPT = 'kept-from-the-key-50713';

export const keyOfRepositories: Attack = {
  name: 'key-of-repositories',
  finding: 'not tried',
  what: 'With a key of Alice for one repository, Bob has an agent of that repository look for all else that she has.',
  expected: {
    process: held('agents of the conversations that the key may start open no other repository'),
  },
  run: async (world) => {
    // Sandboxes reach no other port of this machine.
    const port = await reservedPort();
    const environment = { PORT: String(port), SANDBOX_NETWORK_ALLOW: `127.0.0.1:${port}` };
    return await world.apart({ environment }, attack);
  },
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { alice, git } = world;
  await world.giveToken(alice);
  await git.commit(OWN, 'main', { 'a.txt': 'a' });
  await git.commit(OTHER, 'main', { 'b.txt': KEPT });
  const issued = await alice.client.post('/api/v1/api-keys', {
    name: 'lent',
    scopes: SCOPES,
    repositories: [`github:${OWN}`],
  });
  const opened = await byAgent(world, text(issued, 'key'));
  return { held: opened.length === 0, seen: `opened by its agent: ${opened.join(', ') || 'nothing'}` };
}

/** An agent about the repository of the key looks for the token, and starts others with it. */
async function byAgent({ alice, git, hub, url }: HostileWorld, key: string): Promise<string[]> {
  const { client } = alice;
  await client.saveSettings({ mcp_config: { shttp_servers: [{ url: `${url}/mcp`, api_key: client.key }] } });
  const { host } = new URL(git.origin);
  const ways = {
    fill: `printf 'protocol=http\\nhost=${host}\\npath=${OTHER}\\n\\n' | git credential fill`,
    environment: 'env -0; cat /proc/[0-9]*/environ',
    files: 'cat .git/config ~/.git* ~/.netrc ~/.config/git/* /tmp/*; git config --list',
    clone: `git clone -q ${git.origin}/${OTHER}.git ../kept; cat ../kept/b.txt`,
  };
  onMessage('look around', (results, { tools }) => {
    const tool = (name: string): string => tools.find((known) => known.endsWith(name)) ?? name;
    const steps = [
      ...Object.values(ways).map((command) =>
        call('terminal', { command: `echo "found=$( { ${command}; } 2> /dev/null | base64 -w0)"` }),
      ),
      call(tool('start_conversation'), { message: 'say hello', repository: OTHER, provider: 'github' }),
      call(tool('suggested_tasks'), {}),
    ];
    return steps[results.length] ?? call('finish', { message: 'Done.' });
  });
  const { body } = await client.send(
    'POST',
    CONVERSATIONS,
    { ...IN_OWN, ...message('look around') },
    {
      'X-Session-API-Key': key,
    },
  );
  const { id: started } = await client.ready(text(body, 'id'));
  const parent = await client.conversationIn(started, 'finished', 'error');
  const observed = JSON.stringify(await client.eventsOfKind(started, 'ObservationEvent'));
  // Where a secret of hers is among it, it is masked, and what follows may begin anywhere within four characters.
  const pieces = [...observed.matchAll(/found=((?:[A-Za-z0-9+/=]|<secret-hidden>)*)/g)].flatMap(
    ([, encoded = '']) => encoded.split('<secret-hidden>'),
  );
  const found = pieces.flatMap((piece) =>
    [0, 1, 2, 3].map((skipped) => Buffer.from(piece.slice(skipped), 'base64').toString()),
  );
  const children = Object(jsonAt(parent, 'sub_conversation_ids')).length;
  return [
    ...(found.join('').includes('PATH=') ? [] : [`no look at all: ${observed.slice(0, 500)}`]),
    ...(found.some((each) => each.includes(hub.token)) ? ['the git token'] : []),
    ...(found.some((each) => each.includes(KEPT)) ? ['the other repository'] : []),
    ...(children > 0 ? ['a child elsewhere'] : []),
    ...(/"tasks"/.test(observed) ? ['suggested tasks of all'] : []),
  ];
}
