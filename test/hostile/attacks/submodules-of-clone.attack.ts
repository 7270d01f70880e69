import { jsonText } from '@slipway/common/json-access.js';
import { RawServer } from '../../support/raw-server.js';
import { type Attack, held, onOneMachine } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const REPOSITORY = 'octo/traps';

export const submodulesOfClone: Attack = {
  name: 'submodules-of-clone',
  finding: 'not tried',
  what: "A repository of Bob's has submodules on the machine of the service, in link-local space, in files and in programs.",
  expected: onOneMachine(
    held('submodules are fetched from the server of their repository only, and Bob is told'),
  ),
  run: async (world) => {
    const asked: string[] = [];
    const inside = await RawServer.start((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization ?? ''}`);
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    });
    try {
      return await attack(world, inside.origin, asked);
    } finally {
      await inside.close();
    }
  },
};

async function attack(
  world: HostileWorld,
  inside: string,
  asked: readonly string[],
): Promise<{ held: boolean; seen: string }> {
  const { bob, git, hub } = world;
  await world.giveToken(bob);
  const addresses = [
    `${inside}/octo/app.git`,
    inside.replace('127.0.0.1', 'localhost'),
    `${git.origin.replace('http://', 'http://x@')}@${inside.slice('http://'.length)}/a`,
    'http://169.254.169.254/latest/meta-data',
    'file:///etc',
    'ext::sh -c "touch /tmp/run-by-submodule"',
    '-u./touch /tmp/run-by-submodule',
    `//${inside.slice('http://'.length)}/a`,
  ];
  const names = addresses.map((_, index) => `trap-${index}`);
  const entries = addresses.map(
    (url, index) => `[submodule "${names[index]}"]\n\tpath = ${names[index]}\n\turl = ${url}\n`,
  );
  const id = await git.commit(REPOSITORY, 'main', { 'a.txt': 'a' });
  await git.commit(
    REPOSITORY,
    'main',
    {
      '.gitmodules': entries.join(''),
      '.gitattributes': '*.bin filter=lfs\n',
      '.lfsconfig': `[lfs]\n\turl = ${inside}\n`,
    },
    { links: Object.fromEntries(names.map((name) => [name, id])) },
  );
  const start = await bob.client.start({
    sandbox_id: bob.sandboxId,
    selected_repository: REPOSITORY,
    git_provider: 'github',
    clone_submodules: true,
    fetch_lfs: true,
  });
  await bob.client.ready(start);
  const detail = jsonText(await bob.client.startTask(start), 'detail') ?? '';
  const told = names.filter((name) => detail.includes(`The submodule ${name} is not fetched`));
  const ran = await bob.sh('test -e /tmp/run-by-submodule');
  const leaked = [...asked, detail].filter((text) => text.includes(hub.token));
  return {
    held: asked.length === 0 && ran.exitCode !== 0 && leaked.length === 0 && told.length === addresses.length,
    seen: `${asked.length} requests to another server, ${leaked.length} with the token; Bob was told of ${told.length} of ${addresses.length}`,
  };
}
