import { callbackify } from 'node:util';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import {
  requestOrigin,
  requireSandboxAddress,
  type SandboxAddress,
} from '@slipway/sandboxes/sandbox-address.js';
import { connectToSandbox } from '@slipway/sandboxes/sandbox-connection.js';

/** A running agent server with its session key. Both belong to one start of the sandbox. */
export interface AgentServerTarget {
  /** `http://host:port`, `unix:/absolute/path` or `kube:namespace/pod:port`, without a trailing slash. */
  address: string;
  sessionKey: string;
  /** Asked before each new connection: after a stop, another program may listen at the address. */
  isCurrent?: () => Promise<boolean>;
}

type Library = typeof import('undici');

const CONNECTIONS_PER_SERVER = 16;
/** Beyond that, the least recently used server loses its connections. */
const MAX_SERVERS = 1_000;
/** Agent servers keep idle connections at least this long. */
const KEEP_ALIVE_MS = 30_000;

/** Connection pools by start of a sandbox, because each start has its own session key even at the same address. */
export class AgentServerConnections {
  private readonly pools = new Map<string, Pool>();

  get size(): number {
    return this.pools.size;
  }

  /** Returns the pool of one agent server, and the origin for its requests. Throws SandboxAddressError. */
  async dispatcher(target: AgentServerTarget): Promise<{ pool: Dispatcher; origin: string }> {
    const address = requireSandboxAddress(target.address);
    // Loaded with the first request, to keep the start of the service fast.
    const undici = await import('undici');
    const name = JSON.stringify([target.address, target.sessionKey]);
    const pool = this.pools.get(name) ?? this.open(undici, address, target, name);
    // Moves the pool to the end: the map is ordered by last use, the least recent first.
    this.pools.delete(name);
    this.pools.set(name, pool);
    this.forgetOldest();
    return { pool, origin: requestOrigin(address) };
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    const pools = [...this.pools.values()];
    this.pools.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  private open(
    undici: Library,
    address: SandboxAddress,
    { isCurrent }: AgentServerTarget,
    name: string,
  ): Pool {
    const connect =
      address.kind === 'tcp' ? undici.buildConnector({ allowH2: false }) : sandboxConnector(address);
    const pool = new undici.Pool(requestOrigin(address), {
      connections: CONNECTIONS_PER_SERVER,
      keepAliveTimeout: KEEP_ALIVE_MS,
      // Every call has a deadline of its own; a clone may take longer than the library's defaults.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: isCurrent ? guardedConnector(connect, isCurrent) : connect,
    });
    const forgetUnused = (): void => {
      const { connected, size } = pool.stats;
      if (connected + size === 0 && this.pools.get(name) === pool) {
        this.pools.delete(name);
        closeUnused(pool);
      }
    };
    pool.on('disconnect', forgetUnused);
    pool.on('connectionError', forgetUnused);
    return pool;
  }

  private forgetOldest(): void {
    const [oldest] = this.pools;
    if (oldest !== undefined && this.pools.size > MAX_SERVERS) {
      this.pools.delete(oldest[0]);
      closeUnused(oldest[1]);
    }
  }
}

/** Once its requests have ended. */
function closeUnused(pool: Pool): void {
  pool.close(() => undefined);
}

/** Connects only while the sandbox is still in the start that the target belongs to. */
function guardedConnector(
  connect: buildConnector.connector,
  isCurrent: () => Promise<boolean>,
): buildConnector.connector {
  const check = callbackify(isCurrent);
  return (options, callback) => {
    check((error, current) => {
      if (current) {
        connect(options, callback);
      } else {
        callback(error ?? new Error('the sandbox has stopped or was started again'), null);
      }
    });
  };
}

function sandboxConnector(address: Exclude<SandboxAddress, { kind: 'tcp' }>): buildConnector.connector {
  const toSocket = callbackify(() => connectToSandbox(address));
  return (_options, callback) => {
    toSocket((error: Error | null, socket) => {
      if (error) {
        callback(error, null);
      } else {
        callback(null, socket.setNoDelay(true));
      }
    });
  };
}
