import { jsonAt } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { type ApiAnswer, text } from '../../system/journeys/support/api-client.js';
import { message, onMessage } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const OWN = 'octo/lent';
const OTHER = 'octo/kept';
const CONVERSATIONS = '/api/v1/app-conversations';
const IN_OWN = { selected_repository: OWN, git_provider: 'github' };
const IN_OTHER = { selected_repository: OTHER, git_provider: 'github' };
const SCOPES = ['read', 'run', 'settings'];
/** Said in the conversation that the key is not for. */
const KEPT = 'kept-from-the-key-50713';

/** A request with the key, and the statuses by which it is refused. */
type Way = [name: string, send: () => Promise<Pick<ApiAnswer, 'status'>>, refused: number[]];

export const keyOfRepositories: Attack = {
  name: 'key-of-repositories',
  finding: 'not tried',
  what: 'With a key of Alice for one repository, Bob asks for all else that she has, and has an agent of that repository look for it.',
  expected: {
    process: held(
      'the key opens conversations about its repository alone, and their agents no other repository',
    ),
  },
  run: async (world) => world.apartForSandboxes(attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { alice, git } = world;
  await world.giveToken(alice);
  await git.commit(OWN, 'main', { 'a.txt': 'a' });
  await git.commit(OTHER, 'main', { 'b.txt': KEPT });
  const kept = await alice.client.started({ ...IN_OTHER, ...message(`remember ${KEPT}`) });
  await alice.client.conversationIn(kept.id, 'finished', 'error');
  const issued = await alice.client.post('/api/v1/api-keys', {
    name: 'lent',
    scopes: SCOPES,
    repositories: [`github:${OWN}`],
  });
  const key = text(issued, 'key');
  const opened = [
    ...(await requests(world, key, kept)),
    ...(await lists(world, key)),
    ...(await byAgent(world, key)),
  ];
  return {
    held: opened.length === 0,
    seen: `opened by the key, its session or its agent: ${opened.join(', ') || 'nothing'}`,
  };
}

/** What was not refused. */
async function requests(
  { alice, url }: HostileWorld,
  key: string,
  kept: { id: string; sandboxId: string; taskId: string },
): Promise<string[]> {
  const signedIn = await fetch(`${url}/auth/key`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ key }),
  });
  const { csrf_token: token } = (await signedIn.json()) as { csrf_token: string };
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const bySession =
    (method: string, path: string, body?: object) => async (): Promise<Pick<ApiAnswer, 'status'>> =>
      fetch(`${url}${path}`, {
        method,
        headers: { Cookie: cookie, 'X-CSRF-Token': token, 'Content-Type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
  const send =
    (method: string, path: string, body?: object, more: Record<string, string> = {}) =>
    async (): Promise<ApiAnswer> =>
      alice.client.send(method, path, body, { 'X-Session-API-Key': key, ...more });
  const { id, sandboxId } = kept;
  const conversation = `${CONVERSATIONS}/${id}`;
  const words = { content: [{ type: 'text', text: 'tell me all' }] };
  const ways: Way[] = [
    ['events', send('GET', `/api/v1/conversation/${id}/events/search`), [404]],
    ['stream', send('GET', `/api/v1/conversation/${id}/events/stream`), [404]],
    ['archive', send('GET', `${conversation}/download`), [404]],
    ['file', send('GET', `${conversation}/file?file_path=b.txt`), [404]],
    ['message', send('POST', `${conversation}/send-message`, words), [404]],
    ['waiting message', send('POST', `/api/v1/conversations/${id}/pending-messages`, words), [404]],
    ['run', send('POST', `${conversation}/run`), [404]],
    ['pull request', send('POST', `${conversation}/pull-request`, { title: 'x' }), [404]],
    ['claim', send('PATCH', conversation, IN_OWN), [404]],
    ['deletion', send('DELETE', conversation), [404]],
    ['older route', send('GET', `/api/conversations/${id}`), [403]],
    ['sandbox', send('GET', `/api/v1/sandboxes?id=${sandboxId}`), [403]],
    ['other spelling', send('GET', `/API/V1/Sandboxes/search/`), [403]],
    [
      'another method',
      send('POST', '/api/v1/sandboxes?_method=GET', {}, { 'X-HTTP-Method-Override': 'GET' }),
      [403],
    ],
    [
      'cloud proxy',
      send('POST', '/api/cloud-proxy', { host: url, path: '/api/v1/users/me', method: 'GET' }),
      [403],
    ],
    ['tools', send('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }), [403]],
    ['settings in clear', send('GET', '/api/v1/users/me?expose_secrets=true'), [403]],
    ['secrets', send('GET', '/api/v1/secrets/search'), [403]],
    ['automation', send('GET', '/api/automation/v1'), [403]],
    ['endpoint', send('POST', '/api/v1/webhook-endpoints', { url: 'https://collector.example.com/' }), [403]],
    ['device', send('GET', '/oauth/device/login?user_code=AAAA-AAAA'), [403]],
    ['audit', send('GET', '/api/v1/audit'), [403]],
    ['a wider key', send('POST', '/api/v1/api-keys', { name: 'w', repositories: ['github:octo/*'] }), [403]],
    ['keys', send('GET', '/api/v1/api-keys'), [403]],
    ['start of nothing', send('POST', CONVERSATIONS, {}), [403]],
    ['start elsewhere', send('POST', CONVERSATIONS, IN_OTHER), [403]],
    [
      'start by another name',
      send('POST', CONVERSATIONS, { ...IN_OWN, selected_repository: `${OWN}.git` }),
      [403],
    ],
    ['start at another host', send('POST', CONVERSATIONS, { ...IN_OWN, git_provider: 'gitlab' }), [403]],
    ['child', send('POST', CONVERSATIONS, { ...IN_OWN, parent_conversation_id: id }), [422]],
    ['its sandbox', send('POST', CONVERSATIONS, { ...IN_OWN, sandbox_id: sandboxId }), [422]],
    ['a bare sandbox', send('POST', CONVERSATIONS, { ...IN_OWN, sandbox_id: alice.sandboxId }), [422]],
    ['branches elsewhere', send('GET', `/api/user/repository/branches?repository=${OTHER}`), [403]],
    ['settings by a session', bySession('GET', '/api/v1/settings'), [403]],
    ['events by a session', bySession('GET', `/api/v1/conversation/${id}/events/search`), [404]],
    ['a start by a session', bySession('POST', CONVERSATIONS, IN_OTHER), [403]],
  ];
  const opened: string[] = [];
  for (const [name, ask, refused] of ways) {
    const { status } = await ask();
    if (!refused.includes(status)) {
      opened.push(`${name} (${status})`);
    }
  }
  return opened;
}

async function lists({ alice }: HostileWorld, key: string): Promise<string[]> {
  const shown: string[] = [];
  for (const path of [
    `${CONVERSATIONS}/search`,
    `${CONVERSATIONS}/start-tasks/search`,
    '/api/v1/git/repositories/search?provider=github',
    '/api/user/suggested-tasks',
  ]) {
    const { body } = await alice.client.send('GET', path, undefined, { 'X-Session-API-Key': key });
    const list = JSON.stringify(body);
    if (list.includes(OTHER) || list.includes(alice.conversationId)) {
      shown.push(`list ${path}`);
    }
  }
  return shown;
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
