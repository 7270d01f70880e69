import { Injectable, Logger } from '@nestjs/common';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '../../../common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import type { AgentServerActivity } from '../../agent-servers/agent-server.client.js';
import { HostIdentity } from '../host-identity.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { IdlenessProbe } from './idleness-probe.js';
import { LostHostReaper } from './lost-host.reaper.js';
import { SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';

const MAX_UNRESPONSIVE_SECONDS = 600;

const MAX_INTERVAL_MS = 30_000;
const MIN_INTERVAL_MS = 1_000;
/** Runs often enough that pauses and removals are never much too late. */
const RUNS_PER_TIMEOUT = 4;

@Injectable()
export class IdleReaper extends BackgroundLoop {
  private unresponsive = new Map<string, number>();

  constructor(
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly sandboxes: SandboxRepository,
    private readonly idleness: IdlenessProbe,
    private readonly lostHosts: LostHostReaper,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {
    super(intervalMs(config.sandboxes), new Logger('Sandboxes'), 'failed to reap idle sandboxes');
  }

  protected async work(): Promise<void> {
    await this.reap();
  }

  async reap(): Promise<void> {
    await this.pauseIdle();
    await this.removeOld();
    await this.lostHosts.reap();
  }

  private async pauseIdle(): Promise<void> {
    const { idleTimeoutSeconds } = this.config.sandboxes;
    if (idleTimeoutSeconds === 0) {
      return;
    }
    const candidates = await this.lifecycle.idleSince(this.host.id, this.ago(idleTimeoutSeconds));
    const unresponsiveBefore = this.unresponsive;
    this.unresponsive = new Map();
    await Promise.all(
      candidates.map(async (sandbox) => {
        if (this.idleness.isInUse(sandbox)) {
          return;
        }
        const activity = await this.idleness.activity(sandbox);
        if (activity !== null) {
          await this.pauseIfIdle(sandbox, activity, idleTimeoutSeconds);
        } else if (!(await this.idleness.isAlive(sandbox))) {
          await this.failIfUnresponsive(sandbox, unresponsiveBefore);
        }
      }),
    );
  }

  /** Activity that only the agent server knows, or that begins just now, prevents the pause. */
  private async pauseIfIdle(
    { id, generation, lastActivityAt }: Sandbox,
    activity: AgentServerActivity,
    timeoutSeconds: number,
  ): Promise<void> {
    const asSeen = { status: 'RUNNING' as const, generation, lastActivityAt };
    const idleSeconds = activity.running ? 0 : activity.idleSeconds;
    if (idleSeconds < timeoutSeconds) {
      await this.sandboxes.update(id, { lastActivityAt: this.ago(idleSeconds) }, asSeen);
      return;
    }
    const statusDetail = `Paused after ${durationText(timeoutSeconds)} without activity.`;
    const options = { change: { statusDetail }, condition: asSeen, cause: 'idle' as const };
    await this.sandboxes.transition(id, 'pause', options);
  }

  /** Otherwise it would use up quota for ever. The reconciler stops its program; a resume starts it again. */
  private async failIfUnresponsive(
    { id, generation, updatedAt }: Sandbox,
    unresponsiveBefore: ReadonlyMap<string, number>,
  ): Promise<void> {
    const key = `${id} ${generation}`;
    const since = unresponsiveBefore.get(key) ?? this.clock.now();
    if (this.clock.now() - since < MAX_UNRESPONSIVE_SECONDS * 1000) {
      this.unresponsive.set(key, since);
      return;
    }
    const statusDetail = `Its agent server has not answered for ${durationText(MAX_UNRESPONSIVE_SECONDS)}: it was stopped. Resume the sandbox to start it again.`;
    await this.sandboxes.transition(id, 'fail', {
      change: { statusDetail },
      condition: { status: 'RUNNING', generation, updatedAt },
      cause: 'does_not_answer',
    });
  }

  private async removeOld(): Promise<void> {
    const { retentionSeconds } = this.config.sandboxes;
    if (retentionSeconds > 0) {
      const old = await this.lifecycle.stoppedSince(this.host.id, this.ago(retentionSeconds));
      await Promise.all(
        old.map(({ id, status, updatedAt }) =>
          this.sandboxes.transition(id, 'remove', { condition: { status, updatedAt }, cause: 'retention' }),
        ),
      );
    }
  }

  private ago(seconds: number): Date {
    return new Date(this.clock.now() - seconds * 1000);
  }
}

function intervalMs({
  idleTimeoutSeconds,
  retentionSeconds,
}: Pick<AppConfig['sandboxes'], 'idleTimeoutSeconds' | 'retentionSeconds'>): number {
  const timeouts = [idleTimeoutSeconds, retentionSeconds].filter((seconds) => seconds > 0);
  const wantedMs = (Math.min(...timeouts, Number.MAX_SAFE_INTEGER) * 1000) / RUNS_PER_TIMEOUT;
  return Math.min(Math.max(wantedMs, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** A whole number of seconds in words: `30 minutes`, `90 seconds`. */
export function durationText(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds >= each && seconds % each === 0) ?? ['second', 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
