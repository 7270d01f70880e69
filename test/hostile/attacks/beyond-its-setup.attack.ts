import { createServer, type Server, type ServerResponse } from 'node:http';
import { jsonText } from '@slipway/common/json-access.js';
import { reservedPort } from '../../support/reserved-port.js';
import { startListening, stopServer } from '../../support/start-listening.js';
import { until } from '../../support/until.js';
import { message, shell } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { ownAddress } from '../support/outside-sandbox.js';

const REPOSITORY = 'octo/set-up';
const CURL = 'curl -s -o /dev/null -m 10';

const CLOSED = held(
  'what the setup alone may reach is closed to all once the agent begins, and once is once',
);

/** A host of the world, and what it was asked for. */
interface Listener {
  address: string;
  asked: string[];
  /** Answers that have begun and do not end. */
  open: Set<ServerResponse>;
}

export const beyondItsSetup: Attack = {
  name: 'beyond-its-setup',
  finding: 'not tried',
  what: "A program of Alice's setup keeps a connection and asks again for her agent, her start's rules and what she allows once ask for more than the operator's, and her agent uses that twice.",
  expected: { process: CLOSED, docker: CLOSED },
  run: async (world) => {
    const host = ownAddress();
    const servers: Server[] = [];
    try {
      const [setup, never] = [await listen(host, servers), await listen(host, servers)];
      const environment = {
        SANDBOX_EGRESS: JSON.stringify({ allow: [setup.address] }),
        SANDBOX_EGRESS_PORT: String(await reservedPort()),
        SANDBOX_NETWORK_ALLOW: `${host}/32`,
      };
      return await world.apart({ host, environment }, async (apart) => attack(apart, setup, never));
    } finally {
      await Promise.all(servers.map(stopServer));
    }
  },
};

async function attack(
  world: HostileWorld,
  setup: Listener,
  never: Listener,
): Promise<{ held: boolean; seen: string }> {
  const { alice, git } = world;
  const { client } = alice;
  const script = [
    `${CURL} http://${never.address}/widened`,
    `${CURL} http://${setup.address}/setup`,
    'until [ -e "$HOME"/left-behind ]; do sleep 0.1; done',
  ].join('\n');
  await git.commit(REPOSITORY, 'main', { '.openhands/setup.sh': `${script}\n` });
  await world.giveToken(alice);
  const task = await client.start({
    selected_repository: REPOSITORY,
    git_provider: 'github',
    egress: { default: 'deny', setup: { default: 'allow', allow: [setup.address, never.address] } },
  });
  await until(() => setup.asked.includes('/setup'));
  const sandbox = jsonText(await client.startTask(task), 'sandbox_id') ?? '';
  // What a setup script leaves behind itself ends with it.
  await client.agentServer(sandbox, 'POST', '/api/bash/start_bash_command', {
    command: `curl -sN -m 300 http://${setup.address}/slow; until [ -e "$HOME"/enough ]; do ${CURL} http://${setup.address}/late; sleep 0.1; done; touch "$HOME"/ended`,
    timeout: 300,
  });
  await until(() => setup.open.size > 0);
  const go = { command: 'touch "$HOME"/left-behind', timeout: 60 };
  await client.agentServer(sandbox, 'POST', '/api/bash/execute_bash_command', go);
  const { id, sandboxId } = await client.ready(task);
  // What has come before is known once this is answered.
  await (await fetch(`http://${setup.address}/ready`)).text();
  const [before, wasOpen] = [setup.asked.indexOf('/ready') + 1, setup.open.size];
  const run = async (command: string): Promise<void> => {
    const begun = await client.started({ sandbox_id: sandboxId, ...message(shell(command)) });
    await client.conversationIn(begun.id, 'finished', 'error');
  };
  await run(`${CURL} http://${setup.address}/agent; ${CURL} http://${never.address}/agent`);
  const after = setup.asked.slice(before);
  // It would use up what is allowed once.
  await client.agentServer(sandbox, 'POST', '/api/bash/execute_bash_command', {
    command: 'touch "$HOME"/enough; until [ -e "$HOME"/ended ]; do sleep 0.1; done',
    timeout: 300,
  });

  const allow = (host: string): Promise<unknown> =>
    client.post(`/api/v1/sandboxes/${sandboxId}/egress/allow`, { host, once: true });
  const widened = await allow(never.address).then(
    () => true,
    () => false,
  );
  await allow(setup.address);
  await run(
    `until ${CURL} -f http://${setup.address}/once; do sleep 0.2; done; for i in 1 2 3; do ${CURL} http://${setup.address}/twice; done`,
  );
  if (!setup.asked.includes('/once')) {
    throw new Error('what was allowed once did not pass');
  }
  const isDenied = (event: unknown): boolean => JSON.stringify(event).includes('EgressDenied');
  await client.eventOf(id, isDenied);
  const found = [
    ...(wasOpen > 0 ? ['a connection of the setup outlived it'] : []),
    ...after.map((path) => `the host was asked for ${path}`),
    ...never.asked.map((path) => `a host that the operator closes was asked for ${path}`),
    ...(widened ? ["more than the operator's rules was allowed"] : []),
    ...(setup.asked.includes('/twice') ? ['once was used twice'] : []),
  ];
  return {
    held: found.length === 0,
    seen: found.join(', ') || `${before} requests in the setup, one after it`,
  };
}

async function listen(host: string, servers: Server[]): Promise<Listener> {
  const asked: string[] = [];
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/slow') {
      open.add(response.once('close', () => open.delete(response)));
      response.write('begun\n');
    } else {
      response.end('reached\n');
    }
  });
  servers.push(server);
  return { address: `${host}:${await startListening(server, 0, host)}`, asked, open };
}
