import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { callbackify } from 'node:util';
import { isPublicAddress } from './public-address.js';

/** Resolves a host name to all of its addresses. */
export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>;

/** A name resolved to an address that may not be called. Does not say which one: that would map the network. */
export class AddressRefusedError extends Error {
  constructor() {
    super('the name resolves to an address that may not be called');
    this.name = 'AddressRefusedError';
  }
}

/**
 * The `lookup` of a connector: resolves once, and hands on only what it has checked, so that the address that
 * is dialled is the address that was judged (a second DNS answer cannot differ). With `publicOnly`, one
 * address that is not public refuses the whole name.
 */
export function checkedLookup(resolve: ResolveHost, publicOnly: boolean): LookupFunction {
  const lookup = callbackify((hostname: string) => checkedAddresses(resolve, hostname, publicOnly));
  return (hostname, options, callback) => {
    lookup(hostname, (error, addresses) => {
      if (error) {
        callback(error, '');
      } else if (options.all) {
        callback(null, addresses);
      } else {
        callback(null, addresses[0].address, addresses[0].family);
      }
    });
  };
}

async function checkedAddresses(
  resolve: ResolveHost,
  hostname: string,
  publicOnly: boolean,
): Promise<[LookupAddress, ...LookupAddress[]]> {
  const [first, ...others] = await resolve(hostname);
  if (!first) {
    throw new Error('the name has no address');
  }
  if (publicOnly && ![first, ...others].every(({ address }) => isPublicAddress(address))) {
    throw new AddressRefusedError();
  }
  return [first, ...others];
}
