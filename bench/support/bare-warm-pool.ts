import { randomUUID } from 'node:crypto';
import { jsonNumber } from '@slipway/common/json-access.js';
import { bareBlueprint, type BenchNamespace, EXTENSIONS_API } from './bare-sandbox.js';
import { timed } from './sandbox-lives.js';

/** A SandboxWarmPool of one bare Sandbox, which agent-sandbox's own controller keeps and hands out. */
export class BareWarmPool {
  private readonly name = `pool-${randomUUID().slice(0, 8)}`;

  private constructor(private readonly namespace: BenchNamespace) {}

  static async create(namespace: BenchNamespace, image: string, volumeSize: string): Promise<BareWarmPool> {
    const pool = new BareWarmPool(namespace);
    const { name } = pool;
    await namespace.create(
      {
        apiVersion: EXTENSIONS_API,
        kind: 'SandboxTemplate',
        metadata: { name },
        // Its default policy would keep nodes out, where policies are enforced.
        spec: { ...bareBlueprint(image, volumeSize), networkPolicyManagement: 'Unmanaged' },
      },
      'sandboxtemplates',
    );
    await namespace.create(
      {
        apiVersion: EXTENSIONS_API,
        kind: 'SandboxWarmPool',
        metadata: { name },
        spec: { replicas: 1, sandboxTemplateRef: { name } },
      },
      'sandboxwarmpools',
    );
    return pool;
  }

  /** Waits until a Sandbox is ready to be claimed. */
  async untilFull(): Promise<void> {
    await this.namespace.until(
      'sandboxwarmpools',
      this.name,
      'full',
      (pool) => jsonNumber(pool, 'status', 'readyReplicas') === 1,
    );
  }

  /** Milliseconds from the request of a claim until its Sandbox is ready. The claim is removed afterwards. */
  async claim(): Promise<number> {
    const name = `claim-${randomUUID()}`;
    const ms = await timed(async () => {
      await this.namespace.create(
        {
          apiVersion: EXTENSIONS_API,
          kind: 'SandboxClaim',
          metadata: { name },
          spec: { warmPoolRef: { name: this.name } },
        },
        'sandboxclaims',
      );
      await this.namespace.untilCondition(name, 'Ready', 0, 'sandboxclaims');
    });
    await this.namespace.delete(name, 'sandboxclaims');
    return ms;
  }
}
