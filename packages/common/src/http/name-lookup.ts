import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { errorCode } from '../errors/error-message.js';
import { isPublicHostName } from './address-rules.js';

/** As {@link addressesOf}. */
export type ResolveName = (hostname: string, isOfOperator: boolean) => Promise<readonly LookupAddress[]>;

/** For a question, and for its repetition. */
const ANSWER_MS = 2_000;
const TRIES = 2;

/**
 * The addresses of a name. The system's own look-up, which knows files and search domains too, occupies one of few threads for as long
 * as the name's servers take; so names that anybody may have made are asked of name servers, which takes none.
 * @param isOfOperator the operator names the host, or what is looked for may be in a network of theirs
 */
export async function addressesOf(hostname: string, isOfOperator: boolean): Promise<LookupAddress[]> {
  return isOfOperator || !isPublicHostName(hostname)
    ? await lookup(hostname, { all: true })
    : await askNameServers(hostname);
}

/**
 * @param servers by default those of the system, as they are now
 * @throws Error with a code as the system's look-up has: ENOTFOUND, or EAI_AGAIN where no server could tell
 */
export async function askNameServers(
  hostname: string,
  servers?: readonly string[],
): Promise<LookupAddress[]> {
  const resolver = new Resolver({ timeout: ANSWER_MS, tries: TRIES });
  if (servers) {
    resolver.setServers(servers);
  }
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') {
    throw asOfSystem(hostname, [four.reason, six.reason]);
  }
  return [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ];
}

/** Of a server that cannot be asked, c-ares says ECONNREFUSED, which would be read of the host. */
function asOfSystem(hostname: string, reasons: readonly unknown[]): Error {
  const codes = reasons.map(errorCode);
  const isUnknown = codes.includes('ENOTFOUND') || codes.every((code) => code === 'ENODATA');
  const code = isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN';
  const cause = reasons[codes.findIndex((each) => each !== 'ENODATA')];
  return Object.assign(new Error(`query ${code} ${hostname}`, { cause }), { code, syscall: 'query' });
}
