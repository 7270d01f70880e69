import { reservedPort } from '../../support/reserved-port.js';
import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { ownAddress } from '../support/outside-sandbox.js';

const OWN = 'octo/reads';
const OTHER = 'octo/lib';
const LARGE_FILE = `'{"operation":"upload","objects":[]}'`;
const CURL = 'curl -sS -m 20 -o /dev/null --path-as-is';

export const pushWhereItReads: Attack = {
  name: 'push-where-it-reads',
  finding: 'not tried',
  what: "Alice's agent may read another repository beside its own, and pushes there, by git and by requests that look like reading.",
  expected: { process: held('the other repository is cloned, and no request that pushes has the token') },
  run: async (world) => {
    const host = ownAddress();
    const environment = {
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_EGRESS_PORT: String(await reservedPort()),
    };
    return await world.apart({ host, environment }, attack);
  },
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { alice, git, hub } = world;
  await git.commit(OWN, 'main', { 'a.txt': 'a' });
  const before = await git.commit(OTHER, 'main', { 'a.txt': 'a' });
  await world.giveToken(alice);
  const at = `${git.origin}/${OTHER}.git`;
  const asked = `-u "x-access-token:$GITHUB_TOKEN" -X POST -d 0000`;
  const ways = [
    `git clone -q ${at} other && echo other-repository-cloned`,
    'cd other && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m mine && git push -q origin HEAD:main',
    `${CURL} -u "x-access-token:$GITHUB_TOKEN" "${at}/info/refs?service=git-receive-pack"`,
    `${CURL} -u "x-access-token:$GITHUB_TOKEN" "${at}/info/refs?service=git-upload-pack&service=git-receive-pack"`,
    ...['', '/git-upload-pack', ';/git-upload-pack', '%23/git-upload-pack', '%3f/git-upload-pack'].map(
      (end) => `${CURL} ${asked} "${at}/git-receive-pack${end}"`,
    ),
    `${CURL} ${asked} "${at}/git-upload-pack/../git-receive-pack"`,
    `${CURL} ${asked.replace('0000', LARGE_FILE)} "${at}/info/lfs/objects/batch"`,
  ];
  const { id } = await alice.client.started({
    selected_repository: OWN,
    git_provider: 'github',
    sandbox_id: alice.sandboxId,
    repositories_read: [`github:${OTHER}`],
    ...message(shell(ways.map((way) => `{ ${way}; } 2>&1`).join('; '))),
  });
  await alice.client.conversationIn(id, 'finished', 'error');
  const shown = JSON.stringify(await alice.client.eventsOfKind(id, 'ObservationEvent'));
  if (!shown.includes('other-repository-cloned')) {
    throw new Error(`the other repository cannot be read: ${shown.slice(0, 800)}`);
  }
  const pushing = git.requests.filter(
    ({ url, credentials }) =>
      url.includes(OTHER) &&
      /receive-pack|objects\/batch/.test(url) &&
      credentials?.includes(hub.token) === true,
  );
  const isMoved = (await git.tip(OTHER, 'main')) !== before;
  return {
    held: pushing.length === 0 && !isMoved,
    seen: `${ways.length} ways: ${pushing.map(({ url }) => url).join(', ') || 'none had the token'}${isMoved ? ', and a commit arrived' : ''}`,
  };
}
