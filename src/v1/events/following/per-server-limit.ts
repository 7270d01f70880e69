import { ConcurrencyLimit } from '../../../common/concurrency-limit.js';

/** Lets each agent server have only so many reads at once: one that hangs holds no more than these. */
export class PerServerLimit {
  private readonly servers = new Map<string, { limit: ConcurrencyLimit; reads: number }>();

  constructor(private readonly max: number) {}

  /** Servers that have reads right now. */
  get size(): number {
    return this.servers.size;
  }

  /** Runs the read as soon as its server has room for it, and settles as the read does. */
  async run<T>(address: string, read: () => Promise<T>): Promise<T> {
    const server = this.servers.get(address) ?? { limit: new ConcurrencyLimit(this.max), reads: 0 };
    this.servers.set(address, server);
    server.reads += 1;
    try {
      return await server.limit.run(read);
    } finally {
      server.reads -= 1;
      if (server.reads === 0) {
        this.servers.delete(address);
      }
    }
  }
}
