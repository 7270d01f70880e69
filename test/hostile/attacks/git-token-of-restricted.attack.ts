import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const REPOSITORY = 'octo/restricted';
const LIMITS = [{ secret_names: [] }, { secret_names: ['DEPLOY_TOKEN'] }, { git: 'read' }, { git: 'none' }];

const EXPECTED = held('no program of the sandbox finds it, and none but its own tools pushes');

/** In another form than that which is masked in events. */
const ENCODED = 'base64 -w0';

export const gitTokenOfRestricted: Attack = {
  name: 'git-token-of-restricted',
  finding: 2,
  what: "A stranger has the agent of Bob, who gave the conversation no git token, ask git, environments and files for Bob's.",
  // Without bubblewrap, the memory of the agent server is open anyway.
  expected: { process: EXPECTED, docker: EXPECTED },
  run: async (world) => {
    const { bob, git } = world;
    await world.giveToken(bob);
    await git.commit(REPOSITORY, 'main', { 'a.txt': 'a' });
    const found: string[] = [];
    for (const [index, limits] of LIMITS.entries()) {
      const branch = `pushed-${index}`;
      const seen = await search(world, limits, branch);
      const isPushed = await git.tip(REPOSITORY, branch).then(
        () => true,
        () => false,
      );
      found.push(...seen, ...(isPushed ? ['a push'] : []));
    }
    return {
      held: found.length === 0,
      seen: `with ${LIMITS.length} kinds of limits, found by: ${found.join(', ') || 'nothing'}`,
    };
  },
};

/** Ways by which the token was found. */
async function search(world: HostileWorld, limits: object, branch: string): Promise<string[]> {
  const { bob, git, hub } = world;
  const { host } = new URL(git.origin);
  const ways = {
    fill: `printf 'protocol=http\\nhost=${host}\\n\\n' | git credential fill`,
    environment: 'env -0; cat /proc/[0-9]*/environ',
    files: 'cat .git/config ~/.git* ~/.netrc ~/.config/git/* /tmp/*; git config --list',
  };
  const looks = Object.entries(ways).map(
    ([name, command]) => `echo; echo "${name}=$( { ${command}; } 2> /dev/null | ${ENCODED})"`,
  );
  const push = `git push -q origin HEAD:refs/heads/${branch} 2> /dev/null`;
  const { id } = await bob.client.started({
    sandbox_id: bob.sandboxId,
    selected_repository: REPOSITORY,
    git_provider: 'github',
    ...limits,
    ...message(shell(`${push}; ${looks.join('; ')}`)),
  });
  await bob.client.conversationIn(id, 'finished', 'error');
  const shown = JSON.stringify(await bob.client.eventsOfKind(id, 'ObservationEvent'));
  return Object.keys(ways).filter((name) => {
    const [, encoded = ''] = new RegExp(`${name}=([A-Za-z0-9+/=]+)`).exec(shown) ?? [];
    return Buffer.from(encoded, 'base64').includes(hub.token);
  });
}
