import { spawnSync } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import { type Attack, held, notPromised } from '../attack.js';
import { Bystander } from '../support/bystander.js';
import { connectFrom, type Target } from '../support/connecting.js';
import { clusterEnforcesPolicies } from '../support/attacked-cluster.js';

/** Where clouds answer with the machine's credentials. */
const METADATA: Target[] = [
  { host: '169.254.169.254', port: 80 },
  { host: 'fd00:ec2::254', port: 80 },
];
/** One of each range that is not routed on the internet; given to the machine for the time of the attack. */
const LENT = ['10.93.17.1', '172.29.93.17', '192.168.93.17', '100.64.93.17', '169.254.93.17', 'fd93:17::1'];

export const privateAddresses: Attack = {
  name: 'private-addresses',
  finding: 'not tried',
  what: "Bob's tool connects to the machine's own addresses, to private and link-local ones, and to the metadata address.",
  expected: {
    process: held('destinations in private, link-local and loopback ranges are refused'),
    unwrapped: notPromised('sandboxes share the network of the machine'),
    docker: notPromised(
      'containers reach what their machine reaches; docs/operations/configure.md has rules for its firewall',
    ),
    kubernetes: clusterEnforcesPolicies
      ? held('the policy of the installation lets pods out to public addresses and the service only')
      : notPromised('the network of this cluster enforces no policies (SLIPWAY_TEST_POLICIES)'),
  },
  run: async ({ bob }) => {
    const lent = LENT.filter((address) => lend(address));
    const bystanders = await Promise.all(['0.0.0.0', '::'].map(async (host) => Bystander.listen(host)));
    try {
      const own = Object.values(networkInterfaces())
        .flatMap((addresses) => addresses ?? [])
        .filter(({ internal }) => !internal)
        .map(({ address }) => address)
        // A link-local address of IPv6 means nothing outside its own link.
        .filter((address) => !address.startsWith('fe80:'));
      const ports = bystanders.map(({ port }) => port);
      const hosts = [...new Set([...own, ...lent])];
      const targets = [...METADATA, ...hosts.flatMap((host) => ports.map((port) => ({ host, port })))];
      const reached = (await connectFrom(bob, targets)).filter(({ connected }) => connected);
      const visits = bystanders.reduce((sum, { connections }) => sum + connections, 0);
      return {
        held: reached.length === 0 && visits === 0,
        seen:
          reached.length === 0
            ? `none of ${targets.length} addresses answers (${hosts.join(', ')}, metadata)`
            : `answered: ${[...new Set(reached.map(({ host }) => host))].join(', ')}`,
      };
    } finally {
      await Promise.all(bystanders.map((one) => one.close()));
      lent.forEach((address) => takeBack(address));
    }
  },
};

/** Only root may, where there is iproute2; the machine's own addresses are tried in any case. */
function lend(address: string): boolean {
  return spawnSync('ip', ['address', 'add', prefixed(address), 'dev', 'lo', 'nodad']).status === 0;
}

function takeBack(address: string): void {
  const { status, stderr } = spawnSync('ip', ['address', 'delete', prefixed(address), 'dev', 'lo']);
  if (status !== 0) {
    throw new Error(`${address} stays on the loopback device: ${stderr.toString()}`);
  }
}

function prefixed(address: string): string {
  return `${address}/${address.includes(':') ? 128 : 32}`;
}
