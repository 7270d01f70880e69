import { type Attack, held, notPromised } from '../attack.js';
import { connectFrom, namesOfTheMachine } from '../support/connecting.js';

export const metricsOfService: Attack = {
  name: 'metrics-of-service',
  finding: 9,
  what: "Bob's tool reads the metrics of a service that listens for its sandboxes (`HOST=0.0.0.0`).",
  expected: {
    process: held('a network of its own, in which only webhooks of the service answer'),
    unwrapped: notPromised('sandboxes share the network of the machine'),
    docker: held('metrics listen on loopback where sandboxes are containers'),
  },
  run: async (world) =>
    world.apart({ environment: { HOST: '0.0.0.0', METRICS_PORT: '0' } }, async ({ bob, service }) => {
      const port = Number(/metrics server started.*?port\D+(\d+)/.exec(service.log.join('\n'))?.[1]);
      const targets = (await namesOfTheMachine(bob)).map((host) => ({ host, port }));
      const reached = (await connectFrom(bob, targets)).filter(({ said }) => said.includes('GET /metrics'));
      return {
        held: reached.length === 0,
        seen:
          reached.length === 0
            ? `port ${port} answers at none of ${targets.length} addresses`
            : `metrics at ${reached.map(({ host }) => `${host}:${port}`).join(', ')}`,
      };
    }),
};
