import { homedir } from 'node:os';
import path from 'node:path';
import { jsonText } from '@slipway/common/json-access.js';
import { type Attack, held, notPromised } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const DRAFT = 'the-draft-of-alice-38851';

export const filesOfMachine: Attack = {
  name: 'files-of-machine',
  finding: 'held',
  what: "Bob's tool, and his requests for files through links, read the service's keys, its memory, and Alice's files.",
  expected: {
    process: held('none of them is there'),
    unwrapped: notPromised("the machine's own permissions decide: under root each sandbox is another user"),
    docker: held('none of them is there'),
    kubernetes: held('none of them is there'),
  },
  run: async (world) => {
    const { alice, bob } = world;
    await alice.sh(`echo ${DRAFT} > draft.txt`);
    const draft = (await alice.sh('realpath draft.txt')).output.trim();
    const files = [...filesOf(world), ...(['docker', 'kubernetes'].includes(world.backend) ? [] : [draft])];
    const opened = new Set<string>();
    for (const file of files) {
      // Under its own name, and as every process of another user is known by.
      const { output } = await bob.sh(
        `for f in '${file}' '/proc/1/root${file}'; do head -c 1 "$f" > /dev/null 2>&1 && echo OPEN; done`,
      );
      if (output.includes('OPEN')) {
        opened.add(file);
      }
    }
    await bob.sh('mkdir -p links');
    for (const [index, file] of files.entries()) {
      await bob.sh(`ln -sfn '${file}' links/${index}`);
      for (const name of [`links/${index}`, file, `../../../../../../../..${file}`]) {
        const query = `file_path=${encodeURIComponent(name)}`;
        const answer = await bob.send('GET', `/api/v1/app-conversations/${bob.conversationId}/file?${query}`);
        const content =
          typeof answer.body === 'string' ? answer.body : (jsonText(answer.body, 'content') ?? '');
        if (answer.status === 200 && content !== '') {
          opened.add(`${name} over HTTP`);
        }
      }
    }
    return {
      held: opened.size === 0,
      seen:
        opened.size === 0
          ? `none of ${files.length} files can be opened, in four ways each`
          : `opened: ${[...opened].map((file) => file.replace(world.dataDir, 'DATA_DIR')).join(', ')}`,
    };
  },
};

/** What is worth reading. */
function filesOf({ dataDir, service, alice }: HostileWorld): string[] {
  const ofService = `/proc/${service.pid}`;
  return [
    ...['api-key', 'encryption-keys', 'postgres-password', 'host-id', 'postgres/PG_VERSION'].map((name) =>
      path.join(dataDir, name),
    ),
    `${dataDir}/sandboxes/${alice.sandboxId}/program.json`,
    `${ofService}/environ`,
    `${ofService}/maps`,
    `${ofService}/root${dataDir}/api-key`,
    `${ofService}/cwd/data/api-key`,
    '/etc/shadow',
    `${homedir()}/.bashrc`,
    `${homedir()}/.ssh/authorized_keys`,
    '/var/lib/docker/volumes/metadata.db',
  ];
}
