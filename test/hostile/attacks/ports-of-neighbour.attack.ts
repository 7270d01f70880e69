import { until } from '../../support/until.js';
import { type Attack, held, notPromised } from '../attack.js';
import { addressesOfContainer } from '../support/backends.js';
import { connectFrom, namesOfTheMachine } from '../support/connecting.js';

const DRAFT = 'the draft of Alice';
/** What Alice is working on: it asks for no key. */
const APPLICATION = `
import { createServer } from 'node:http';
createServer((_, response) => response.end('${DRAFT}'))
  .listen(Number(process.env.WORKER_1), () => console.log('SERVING ON ' + process.env.WORKER_1));
`;
/** Of agent servers in containers. */
const AGENT_PORT = 8000;

export const portsOfNeighbour: Attack = {
  name: 'ports-of-neighbour',
  finding: 'not tried',
  what: "Bob's tool connects to Alice's agent server and to the application that she is working on.",
  expected: {
    process: held('each sandbox has a network of its own; none has an address in that of another'),
    unwrapped: notPromised('sandboxes share the ports of the machine'),
    docker: held('the network of sandboxes connects none of them with another one'),
  },
  run: async ({ alice, bob, backend, instanceId }) => {
    const application = await alice.nodeInBackground(APPLICATION);
    try {
      await until(async () => (await application.output()).includes('SERVING'));
      const port = Number(/SERVING ON (\d+)/.exec(await application.output())?.[1]);
      const containers = backend === 'docker' ? await addressesOfContainer(instanceId, alice.sandboxId) : [];
      const hosts = [...(await namesOfTheMachine(bob)), ...containers];
      const outcomes = await connectFrom(bob, [
        ...hosts.map((host) => ({ host, port })),
        ...containers.map((host) => ({ host, port: AGENT_PORT })),
      ]);
      const reached = outcomes.filter(
        ({ host, connected, said }) => said.includes(DRAFT) || (containers.includes(host) && connected),
      );
      return {
        held: reached.length === 0,
        seen:
          reached.length === 0
            ? `Alice's port ${port} answers Bob at none of ${outcomes.length} addresses`
            : `answered: ${reached.map(({ host, port: at }) => `${host}:${at}`).join(', ')}`,
      };
    } finally {
      await application.stop();
    }
  },
};
