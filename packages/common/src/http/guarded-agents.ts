import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { checkedLookup, type ResolveHost } from './address-rules.js';
import type { AddressReach } from './host-allowlist.js';
import { addressesOf } from './name-lookup.js';
import { UpstreamError } from './upstream-error.js';

/** Further requests queue, within their deadline. */
const MAX_CONNECTIONS_PER_ORIGIN = 128;
const KEEP_ALIVE_MS = 30_000;
/** Chunks of any size; each costs about a microsecond, even one of a single byte. */
const MAX_SMALL_CHUNKS = 2_000;
/** Average beyond these; servers send some thousand bytes at a time. */
const MIN_CHUNK_BYTES = 64;

/** A file of its own, so that undici is loaded only with the first request. */
export class GuardedAgents {
  readonly direct: Readonly<Record<AddressReach, Dispatcher>>;
  readonly proxied: Dispatcher | null;

  constructor(
    resolve: ResolveHost | undefined,
    proxyUrl: string | null,
    connections = MAX_CONNECTIONS_PER_ORIGIN,
  ) {
    const options = agentOptions(connections);
    const agentFor = (reach: AddressReach): Dispatcher => {
      const find: ResolveHost = resolve ?? ((hostname) => addressesOf(hostname, reach !== 'public'));
      return new Agent({ ...options, connect: { lookup: checkedLookup(find, reach) } }).compose(
        refuseTinyChunks,
      );
    };
    this.direct = { public: agentFor('public'), network: agentFor('network'), any: agentFor('any') };
    this.proxied =
      proxyUrl === null
        ? null
        : new ProxyAgent({ ...options, uri: proxyUrl, proxyTls: { allowH2: false } }).compose(
            refuseTinyChunks,
          );
  }

  async destroy(): Promise<void> {
    const agents = [...Object.values(this.direct), ...(this.proxied ? [this.proxied] : [])];
    await Promise.all(agents.map(async (agent) => agent.destroy()));
  }
}

/** Counts here, as a reader gets chunks that arrived together as one. */
function refuseTinyChunks(dispatch: Dispatcher.Dispatch): Dispatcher.Dispatch {
  return (options, handler) => {
    let chunks = 0;
    let bytes = 0;
    return dispatch(options, {
      onRequestStart: (...args) => handler.onRequestStart?.(...args),
      onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
      onResponseStart: (...args) => handler.onResponseStart?.(...args),
      onResponseData: (controller, chunk) => {
        chunks += 1;
        bytes += chunk.length;
        if (chunks > MAX_SMALL_CHUNKS && bytes < chunks * MIN_CHUNK_BYTES) {
          controller.abort(new UpstreamError('too_large', String(options.origin)));
          return;
        }
        handler.onResponseData?.(controller, chunk);
      },
      onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
      onResponseError: (...args) => handler.onResponseError?.(...args),
    });
  };
}

function agentOptions(connections: number): Agent.Options {
  return {
    connections,
    // One request at a time per connection: a slow response never delays another user's.
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
}
