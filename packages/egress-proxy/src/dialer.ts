import type { LookupAddress } from 'node:dns';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { inTime, KeyedLimit } from '@slipway/common/async.js';
import { errorCode, errorWithCauses } from '@slipway/common/errors/error-message.js';
import { isPublicAddress } from '@slipway/common/http/address-rules.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { addressesOf, type ResolveName } from '@slipway/common/http/name-lookup.js';
import type { EgressPolicy, EgressRules } from './protocol.js';
import { denied, RefusedError } from './refusal.js';
import { shownTarget, type Target } from './target.js';

const LOOKUP_MS = 10_000;
const CONNECT_MS = 20_000;
/** Of one of several addresses, before the next is tried beside it. */
const ATTEMPT_MS = 2_000;
/** The system's resolver occupies one of few threads for each name, so a sandbox with slow names waits for itself. */
const LOOKUPS_OF_A_SANDBOX = 4;
/** As many as it may have connections. */
const WAITING_LOOKUPS = 512;

interface DialerOptions {
  resolve?: ResolveName | undefined;
  /** Ports at which the proxy itself listens: nothing is passed on to it. */
  ownPorts: () => readonly number[];
  /** As `networkInterfaces`. */
  interfaces?: () => Interfaces;
}

type Interfaces = Readonly<Record<string, readonly { address: string }[] | undefined>>;

/** Connects to the addresses of a name that may be reached, and to no other: the name is resolved once. */
export class Dialer {
  private readonly resolve: ResolveName;
  private readonly interfaces: () => Interfaces;
  private readonly lookups = new KeyedLimit(LOOKUPS_OF_A_SANDBOX);

  constructor(private readonly options: DialerOptions) {
    this.resolve = options.resolve ?? addressesOf;
    this.interfaces = options.interfaces ?? networkInterfaces;
  }

  get pending(): number {
    return this.lookups.size;
  }

  /** @throws RefusedError where no address may be dialled, or none answers */
  async dial(policy: Pick<EgressPolicy, 'sandbox' | 'networks' | 'layers'>, target: Target): Promise<Socket> {
    const found = await this.addresses(policy, target);
    const allowed = found.filter(({ address }) => this.mayDial(address, target, policy));
    if (allowed.length === 0) {
      throw denied('address', target);
    }
    return await connectTo(allowed, target);
  }

  private async addresses(
    { sandbox, networks }: Pick<EgressPolicy, 'sandbox' | 'networks'>,
    target: Target,
  ): Promise<readonly LookupAddress[]> {
    const { host, isAddress } = target;
    if (isAddress) {
      return [{ address: host, family: host.includes(':') ? 6 : 4 }];
    }
    if (this.lookups.waiting(sandbox) >= WAITING_LOOKUPS) {
      throw new RefusedError(null, 503, `This sandbox waits for ${WAITING_LOOKUPS} names to be resolved.`);
    }
    try {
      return await inTime(
        LOOKUP_MS,
        // Its thread is occupied for as long as the resolver takes, also when the wait has ended.
        this.lookups.run(sandbox, () => this.resolve(host, mayBeOfOperator(host, networks))),
        () => new Error('the resolver did not answer in time'),
      );
    } catch (error) {
      throw hostUnreachable(target, error);
    }
  }

  /** Whether the name or address of a target may lead there. */
  mayDial(
    address: string,
    { host, port }: Target,
    { networks, layers }: Pick<EgressPolicy, 'networks' | 'layers'>,
  ): boolean {
    const isOfThis = isOfThisMachine(address, this.interfaces());
    if (
      (isOfThis && this.options.ownPorts().includes(port)) ||
      deniesAddress(layers, ipaddr.process(address).toString(), port)
    ) {
      return false;
    }
    // Services of this machine listen at its public addresses too.
    return (
      (isPublicAddress(address) && !isOfThis) ||
      networks.some((entry) => isWithinNetwork(entry, { address, host, port }))
    );
  }
}

/** Names in a network that is opened as a range may be known by search domains, or by files, alone. */
function mayBeOfOperator(host: string, networks: readonly string[]): boolean {
  return networks.some((entry) => entry.includes('/') || entry.replace(/:\d+$/, '') === host);
}

async function connectTo(addresses: readonly LookupAddress[], target: Target): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({
    host: target.host,
    port: target.port,
    allowHalfOpen: true,
    noDelay: true,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
    lookup: (_host, { all }, callback) => {
      const [first] = addresses;
      if (all) {
        callback(null, [...addresses]);
      } else {
        callback(null, first?.address ?? '', first?.family);
      }
    },
  });
  // It stays: a host may reset the connection while nothing reads it, which must not end the proxy.
  socket.once('connect', () => resolve(socket)).on('error', reject);
  try {
    return await inTime(CONNECT_MS, promise, () => new Error('no answer in time'));
  } catch (error) {
    socket.destroy();
    throw hostUnreachable(target, error);
  }
}

/** A failure of the host or of the network, not of a rule. */
export function hostUnreachable(target: Target, error: unknown): RefusedError {
  if (error instanceof RefusedError) {
    return error;
  }
  const what = errorCode(error) === 'ENOTFOUND' ? 'its name has no address' : errorWithCauses(error);
  return new RefusedError(
    null,
    502,
    `Slipway's egress proxy cannot reach ${shownTarget(target)}: ${what}`,
    null,
    {
      cause: error,
    },
  );
}

/** An entry of a policy's `networks`: a range, an address, or an address or a name with a port. */
export function isWithinNetwork(
  entry: string,
  { address, host, port }: { address: string; host: string; port: number },
): boolean {
  const dialled = ipaddr.process(address);
  if (ipaddr.isValidCIDR(entry)) {
    const [network, bits] = ipaddr.parseCIDR(entry);
    return dialled.kind() === network.kind() && dialled.match(network, bits);
  }
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]]*)\]|([^:]*|[^:]*:.*:[^:]*?))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const name = bracketed ?? plain ?? '';
  if (digits !== undefined && Number(digits) !== port) {
    return false;
  }
  return ipaddr.isValid(name) ? ipaddr.process(name).toString() === dialled.toString() : name === host;
}

/** Whether a rule denies what a name has led to: anybody can make a name for an address. */
function deniesAddress(layers: readonly EgressRules[], dialled: string, port: number): boolean {
  return layers.some(({ deny }) =>
    deny.some((entry) => {
      const address = entry.host.replace(/^\[(.*)\]$/, '$1');
      const isSame = ipaddr.isValid(address) && ipaddr.process(address).toString() === dialled;
      return isSame && (entry.port ?? port) === port;
    }),
  );
}

function isOfThisMachine(address: string, interfaces: Interfaces): boolean {
  const plain = ipaddr.process(address).toString();
  return (
    isLoopbackHost(plain) ||
    ['0.0.0.0', '::'].includes(plain) ||
    Object.values(interfaces).some((all) =>
      all?.some((own) => ipaddr.process(own.address).toString() === plain),
    )
  );
}
