import { createServer } from 'node:net';
import { startListening } from '../../support/start-listening.js';
import { type Attack, held } from '../attack.js';
import type { Tenant } from '../support/tenant.js';

/** Stands in for the name server of an owner of names below the wildcard. */
const NAME_SERVER = `
import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
const { lookup } = dns;
dns.lookup = async (name, options) =>
  name.endsWith('.corp.example.com') ? [{ address: '127.0.0.1', family: 4 }] : lookup(name, options);
syncBuiltinESMExports();
`;

export const wildcardToLoopback: Attack = {
  name: 'wildcard-to-loopback',
  finding: 'not tried',
  what: 'Bob names a git server below a wildcard of the allowlist, and has its name resolve to the loopback of the service.',
  expected: { process: held('nobody connects there; a server that is listed by its name is still reached') },
  run: async (world) => {
    let connections = 0;
    const listener = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    const port = await startListening(listener);
    const connectionsFor = async (tenant: Tenant, host: string): Promise<number> => {
      const before = connections;
      await tenant.client.post('/api/add-git-providers', {
        provider_tokens: { gitlab: { token: `glpat-of-${tenant.name}`, host: `${host}:${port}` } },
      });
      await tenant.send('GET', '/api/user/suggested-tasks');
      return connections - before;
    };
    try {
      return await world.apart(
        {
          environment: { GIT_HOST_ALLOWLIST: `*.corp.example.com:${port},listed.corp.example.com:${port}` },
          nodeArgs: [`--import=data:text/javascript,${encodeURIComponent(NAME_SERVER)}`],
          sandboxes: false,
        },
        async ({ alice, bob }) => {
          const listed = await connectionsFor(alice, 'listed.corp.example.com');
          if (listed === 0) {
            throw new Error('the name that stands for loopback does not lead there');
          }
          const found = await connectionsFor(bob, 'git.corp.example.com');
          return {
            held: found === 0,
            seen: `${found} connections below the wildcard, ${listed} to the listed name`,
          };
        },
      );
    } finally {
      listener.close();
    }
  },
};
