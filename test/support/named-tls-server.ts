import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { callbackify } from 'node:util';
import type { EgressPolicy } from '../../packages/egress-proxy/src/protocol.js';
import { SandboxAuthorities } from '../../packages/egress-proxy/src/sandbox-authority.js';
import { target } from '../../packages/egress-proxy/test/support/sample-policy.js';

/** A server of https that has a certificate of the authority for whatever name it is asked for. */
export function namedTlsServer(authority: EgressPolicy['authority'], listener: RequestListener): Server {
  const certificates = new SandboxAuthorities();
  return createServer(
    {
      SNICallback: (name, callback) => {
        const context = callbackify(() => certificates.contextFor(authority, target(`https://${name}`)));
        context((error, made) => callback(error, made));
      },
    },
    listener,
  );
}
