import { type Attack, held, notPromised } from '../attack.js';
import { Bystander, SECRET_OF_THE_MACHINE } from '../support/bystander.js';
import { connectFrom, namesOfTheMachine } from '../support/connecting.js';

export const loopbackOfMachine: Attack = {
  name: 'loopback-of-machine',
  finding: 'not tried',
  what: "Bob's tool connects to what listens on the machine's loopback and wants no key, as databases and metrics do.",
  expected: {
    process: held(
      'a network of its own: of the loopback only the service and what the operator allows answer, under any address',
    ),
    unwrapped: notPromised('sandboxes share the network of the machine'),
    docker: held('a network of its own: what listens on loopback alone does not answer'),
    kubernetes: held('a network of its own: what listens on loopback alone does not answer'),
  },
  run: async ({ bob }) => {
    const bystanders = await Promise.all([Bystander.listen('127.0.0.1'), Bystander.listen('::1')]);
    try {
      const ports = bystanders.map(({ port }) => port);
      const hosts = await namesOfTheMachine(bob);
      const targets = hosts.flatMap((host) => ports.map((port) => ({ host, port })));
      // By what they say: there are networks in which a proxy answers for every address.
      const reached = (await connectFrom(bob, targets)).filter(({ said }) =>
        said.includes(SECRET_OF_THE_MACHINE),
      );
      const visits = bystanders.reduce((sum, { connections }) => sum + connections, 0);
      return {
        held: reached.length === 0 && visits === 0,
        seen:
          reached.length === 0
            ? `none of ${targets.length} addresses answers`
            : `answered: ${reached.map(({ host, port }) => `${host}:${port}`).join(', ')}`,
      };
    } finally {
      await Promise.all(bystanders.map((one) => one.close()));
    }
  },
};
