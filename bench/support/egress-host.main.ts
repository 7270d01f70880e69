/**
 * Stands in for what is beyond the egress proxy, the host and the service, in a process of its own: what is measured shares no event loop
 * with it. It says where it is, and answers for each policy that it is given.
 */
import { FakeEgressService } from '../../packages/egress-proxy/test/support/fake-egress-service.js';
import { newAuthority } from '../../packages/egress-proxy/src/new-authority.js';
import type { EgressPolicy } from '../../packages/egress-proxy/src/protocol.js';
import { namedTlsServer } from '../../test/support/named-tls-server.js';
import { startListening } from '../../test/support/start-listening.js';

export interface EgressHost {
  port: number;
  service: string;
  /** Of the authority that signs the host's. */
  certificate: string;
}

/** A sandbox, by its credential. */
export interface KnownSandbox {
  credential: string;
  policy: EgressPolicy;
}

const MB = 1_000_000;
const FILE_MB = 256;

const file = Buffer.alloc(MB, 'x');
const [service, hosts] = await Promise.all([FakeEgressService.start(), newAuthority('hosts')]);
const server = namedTlsServer(hosts, (incoming, response) => {
  if (incoming.url === '/file') {
    let left = FILE_MB;
    const write = (): void => {
      while (left > 0) {
        left -= 1;
        if (!response.write(file)) {
          response.once('drain', write);
          return;
        }
      }
      response.end();
    };
    write();
  } else {
    response.end('ok');
  }
});
const port = await startListening(server);

process.on('message', ({ credential, policy }: KnownSandbox) => {
  service.policies.set(credential, policy);
  process.send?.('known');
});
process.on('disconnect', () => process.exit());
const host: EgressHost = { port, service: service.address.href, certificate: hosts.certificate };
process.send?.(host);
