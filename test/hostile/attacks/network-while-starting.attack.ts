import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { jsonText } from '@slipway/common/json-access.js';
import { findProgram } from '../../../packages/sandboxes/src/process/platform.js';
import { until } from '../../support/until.js';
import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import { Bystander, SECRET_OF_THE_MACHINE } from '../support/bystander.js';
import { NAMES_OF_THE_MACHINE, type Target } from '../support/connecting.js';
import type { HostileWorld } from '../support/hostile-world.js';

const REPOSITORY = 'octo/first';
/** How long each sandbox is without its network. */
const SLOW_SECONDS = 3;
const LOOK_MS = 4_000;
const ALICES_PORT = 8011;
const METADATA: Target = { host: '169.254.169.254', port: 80 };

/** Says what its first request to an opened port is answered, and who answers elsewhere for as long as it looks. */
const programFor = (targets: readonly Target[]) => `
const { connect } = process.getBuiltinModule("node:net");
const [opened, ...closed] = ${JSON.stringify(targets)};
const ask = (target) => new Promise((resolve) => {
  const socket = connect(target).setTimeout(target === opened ? 60_000 : 1_500);
  const end = (said) => { socket.destroy(); resolve(String(said).trim()); };
  socket.on("connect", () => socket.write("GET / HTTP/1.0\\r\\n\\r\\n"));
  socket.on("data", end).on("timeout", () => end("")).on("end", () => end("")).on("error", () => end(""));
});
ask(opened).then((said) => console.log("FIRST:" + said + ";"));
const until = Date.now() + ${LOOK_MS};
Promise.all(closed.map(async (target) => {
  while (Date.now() < until) {
    if (await ask(target)) console.log("REACHED:" + target.host + ":" + target.port + ";");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
})).then(() => console.log("LOOKED:" + closed.length + ";"));
`;

const APPLICATION = `
import { createServer } from 'node:http';
createServer((_, response) => { console.log('VISITED'); response.end('the draft of Alice'); })
  .listen(${ALICES_PORT}, () => console.log('SERVING'));
`;

/** A service with a slow slirp4netns, one opened port, and a specification whose program is Bob's. */
async function environment(
  folder: string,
  opened: Bystander,
  program: string,
): Promise<Record<string, string>> {
  const searchPath = process.env['PATH'];
  const slow = `#!/bin/sh
case "$SLIPWAY_SANDBOX" in */.probe*) ;; *) sleep ${SLOW_SECONDS} ;; esac
exec ${await findProgram('slirp4netns', searchPath)} "$@"
`;
  const pieces = program.match(/[^]{1,900}/g) ?? [];
  const command = [process.execPath, '-e', 'eval(process.argv.slice(1).join(""))', ...pieces];
  const specs = [
    { id: 'honest', agent_server: 'slipway' },
    { id: 'rogue', agent_server: 'openhands', command },
  ];
  const file = path.join(folder, 'specs.json');
  await chmod(folder, 0o755);
  await writeFile(path.join(folder, 'slirp4netns'), slow, { mode: 0o755 });
  await writeFile(file, JSON.stringify(specs));
  return {
    PATH: `${folder}:${searchPath}`,
    SANDBOX_SPECS_FILE: file,
    SANDBOX_NETWORK_ALLOW: `localhost:${opened.port}`,
  };
}

/** What the program saw as a sandbox of its own, and as the first tool call after a clone, which needs the network as well. */
async function look(world: HostileWorld, program: string): Promise<string[]> {
  const { bob, git, dataDir } = world;
  await world.giveToken(bob);
  await git.commit(REPOSITORY, 'main', { 'a.txt': 'a' });
  const rogue = jsonText(await bob.client.post('/api/v1/sandboxes?sandbox_spec_id=rogue'), 'id') ?? '';
  const conversation = await bob.client.started({
    selected_repository: REPOSITORY,
    git_provider: 'github',
    ...message(shell(`'${process.execPath}' -e '${program}'`)),
  });
  await bob.client.conversationIn(conversation.id, 'finished', 'error');
  const observed = await bob.client.eventsOfKind(conversation.id, 'ObservationEvent');
  const log = async () => await readFile(path.join(dataDir, 'sandboxes', rogue, 'output.log'), 'utf8');
  await until(async () => (await log()).includes('LOOKED:'));
  return [await log(), JSON.stringify(observed)];
}

export const networkWhileStarting: Attack = {
  name: 'network-while-starting',
  finding: 'not tried',
  what: "Bob's program, clone and tool ask the machine, Alice and the metadata address from their first instant on, while their network is still being connected.",
  expected: {
    process: held('nothing runs outside of its own network, and what needs it finds it at its first try'),
  },
  run: async (world) => {
    const [opened, loopback, everywhere] = await Promise.all(
      ['127.0.0.1', '127.0.0.1', '0.0.0.0'].map(async (host) => Bystander.listen(host)),
    );
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-hostile-network-'));
    try {
      if (!opened || !loopback || !everywhere) {
        throw new Error('there are no bystanders');
      }
      const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
      const hosts = new Set([...NAMES_OF_THE_MACHINE, ...own.map(({ address }) => address)]);
      const ports = [loopback.port, everywhere.port, ALICES_PORT];
      const closed = [...hosts].flatMap((host) => ports.map((port) => ({ host, port })));
      const program = programFor([{ host: '127.0.0.1', port: opened.port }, ...closed, METADATA]);
      return await world.apart({ environment: await environment(folder, opened, program) }, async (apart) => {
        const application = await apart.alice.nodeInBackground(APPLICATION);
        await until(async () => (await application.output()).includes('SERVING'));
        const seen = await look(apart, program);
        const visits = loopback.connections + everywhere.connections;
        const wasVisited = (await application.output()).includes('VISITED');
        const reached = seen.flatMap((text) => text.match(/REACHED:[\da-f.:]+(?=;)/g) ?? []);
        const found = seen.filter((text) => text.includes(`FIRST:${SECRET_OF_THE_MACHINE};`));
        const looked = seen.filter((text) => text.includes(`LOOKED:${closed.length + 1};`));
        return {
          held:
            visits === 0 && !wasVisited && reached.length === 0 && found.length === 2 && looked.length === 2,
          seen: `${looked.length} of 2 looked at ${closed.length + 1} addresses: ${visits} visits to the machine, ${wasVisited ? 'some' : 'none'} to Alice, answers of ${reached.join(', ') || 'none'}; ${found.length} of 2 found the network at their first try`,
        };
      });
    } finally {
      await Promise.all([opened, loopback, everywhere].map(async (one) => await one?.close()));
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  },
};
