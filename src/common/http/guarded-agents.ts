import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { type AddressReach, checkedLookup, type ResolveHost } from './address-rules.js';

/** Open connections per origin. Further requests queue, within their deadline. */
const MAX_CONNECTIONS_PER_ORIGIN = 64;
/** How long an idle connection is kept, unless the server names a time. */
const KEEP_ALIVE_MS = 30_000;

/** The connections of a guarded client. In a file of its own, so that undici is loaded with the first request. */
export class GuardedAgents {
  /** The addresses to which each of them may connect. */
  readonly direct: Readonly<Record<AddressReach, Dispatcher>>;
  /** Reaches everything through the proxy; null without one. */
  readonly proxied: Dispatcher | null;

  constructor(resolve: ResolveHost, proxyUrl: string | null) {
    const agentFor = (reach: AddressReach): Agent =>
      new Agent({ ...agentOptions(), connect: { lookup: checkedLookup(resolve, reach) } });
    this.direct = { public: agentFor('public'), network: agentFor('network'), any: agentFor('any') };
    this.proxied =
      proxyUrl === null
        ? null
        : new ProxyAgent({ ...agentOptions(), uri: proxyUrl, proxyTls: { allowH2: false } });
  }

  /** Closes every connection at once. */
  async destroy(): Promise<void> {
    const agents = [...Object.values(this.direct), ...(this.proxied ? [this.proxied] : [])];
    await Promise.all(agents.map(async (agent) => agent.destroy()));
  }
}

function agentOptions(): Agent.Options {
  return {
    connections: MAX_CONNECTIONS_PER_ORIGIN,
    // One request at a time per connection: a slow response never delays another user's.
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
}
