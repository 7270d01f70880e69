import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { HostIdentity } from '../host-identity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { IdlenessProbe } from './idleness-probe.js';
import { SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';

/** How long another host may be late, or away for a restart. */
const GRACE_SECONDS = 60;
/** How long a lost host may take to come back and remove what it should. */
const REMOVAL_GRACE_SECONDS = 86_400;

/** Every host does this; the updates are conditional. */
@Injectable()
export class LostHostReaper {
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly idleness: IdlenessProbe,
    private readonly host: HostIdentity,
    private readonly clock: Clock,
  ) {}

  async reap(): Promise<void> {
    await this.failAbandoned();
    await this.failUnreachable();
    await this.forgetUnremoved();
  }

  /** When the host is back, a resume starts the sandbox there. */
  private async failAbandoned(): Promise<void> {
    const abandoned = await this.lifecycle.abandonedSince(this.host.id, this.ago(GRACE_SECONDS));
    await Promise.all(
      abandoned.map(({ id, hostId, status, updatedAt }) => {
        const statusDetail = `Its host ${hostId} is gone: no process of that host runs.`;
        return this.sandboxes.transition(id, 'fail', {
          change: { statusDetail },
          condition: { status, updatedAt },
        });
      }),
    );
  }

  /** Unreachable sandboxes would use up quota for ever. One that still answers outlived its service, and stays. */
  private async failUnreachable(): Promise<void> {
    const unwatched = await this.lifecycle.runningOnLostHosts(
      this.host.id,
      this.ago(GRACE_SECONDS),
      GRACE_SECONDS,
    );
    await Promise.all(
      unwatched.map(async (sandbox) => {
        if ((await this.idleness.activity(sandbox)) !== null) {
          return;
        }
        const { id, hostId, generation, updatedAt } = sandbox;
        const statusDetail = `It does not answer, and its host ${hostId} is gone: no process of that host runs.`;
        await this.sandboxes.transition(id, 'fail', {
          change: { statusDetail },
          condition: { status: 'RUNNING', generation, updatedAt },
        });
      }),
    );
  }

  /** A removal has no deadline and its row is invisible. Files become orphans, which the returning host removes. */
  private async forgetUnremoved(): Promise<void> {
    const unremoved = await this.lifecycle.unremovedOnLostHosts(
      this.host.id,
      this.ago(REMOVAL_GRACE_SECONDS),
      REMOVAL_GRACE_SECONDS,
    );
    await Promise.all(
      unremoved.map(async ({ id, hostId }) => {
        if (await this.sandboxes.delete(id, { status: 'DELETING' })) {
          this.logger.warn('removed sandbox forgotten: its host is gone, and its files stay there', {
            sandbox_id: id,
            host_id: hostId,
          });
        }
      }),
    );
  }

  private ago(seconds: number): Date {
    return new Date(this.clock.now() - seconds * 1000);
  }
}
