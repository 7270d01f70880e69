import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { within } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { type AgentServerActivity, AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { SandboxLifecycleRepository } from '../sandbox-lifecycle.repository.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { RunningSandboxQueries } from '../sandbox.queries.js';

/** A request this recent means that the user is working in the sandbox. */
const TRAFFIC_MS = 10_000;
/** While a command runs, an agent server reports an idle time of nearly 0. */
const BUSY_SECONDS = 0.1;
const PROBE_TIMEOUT_MS = 3_000;

/** Finds out whether sandboxes are idle. One whose state is unknown counts as busy. */
@Injectable()
export class IdlenessProbe {
  private readonly logger = new Logger(IdlenessProbe.name);

  constructor(
    private readonly client: AgentServerClient,
    private readonly sandboxes: RunningSandboxQueries,
    private readonly clock: Clock,
  ) {}

  async findIdle(sandboxes: readonly Sandbox[]): Promise<Sandbox[]> {
    const unused = sandboxes.filter((sandbox) => sandbox.status === 'RUNNING' && !this.isInUse(sandbox));
    const busy = await Promise.all(unused.map((sandbox) => this.isBusy(sandbox)));
    return unused
      .filter((_sandbox, index) => busy[index] === false)
      .toSorted((a, b) => idleSince(a) - idleSince(b) || a.createdAt.getTime() - b.createdAt.getTime());
  }

  /** What has just begun or ended looks busy for a moment, so the sandbox is asked again after it. */
  private async isBusy(sandbox: Sandbox): Promise<boolean> {
    const first = await this.activity(sandbox);
    // An unused agent server that has just started has a short idle time too, and needs no second look.
    if (first === null || first.running || first.isUnused || first.idleSeconds >= BUSY_SECONDS) {
      return first === null || first.running;
    }
    await delay(BUSY_SECONDS * 1000);
    const second = await this.activity(sandbox);
    return second === null || second.running || second.idleSeconds < BUSY_SECONDS;
  }

  async activity(sandbox: Sandbox): Promise<AgentServerActivity | null> {
    // Read again, since a sandbox of the list may have stopped meanwhile.
    const target = await this.sandboxes.target(sandbox.id);
    if (target === null) {
      return null;
    }
    try {
      return await within(PROBE_TIMEOUT_MS, this.client.activity(target));
    } catch (error) {
      if (error instanceof AgentServerError) {
        this.logger.debug('failed to read agent server activity', {
          sandbox_id: sandbox.id,
          error: error.message,
        });
        return null;
      }
      throw error;
    }
  }

  async isAlive({ address }: Sandbox): Promise<boolean> {
    return address !== null && (await this.client.isAlive(address));
  }

  /** Whether it is kept alive or its user works in it, whatever its agent server says. */
  isInUse({ keepAliveUntil, trafficAt }: Sandbox): boolean {
    const now = this.clock.now();
    return (keepAliveUntil?.getTime() ?? 0) > now || (trafficAt?.getTime() ?? 0) > now - TRAFFIC_MS;
  }
}

function idleSince({ lastActivityAt }: Sandbox): number {
  return lastActivityAt.getTime();
}

/** How long another host may be late, or away for a restart. */
const GRACE_SECONDS = 60;
const WAIT_OR_DELETE = 'Resume it when the host is back, or delete it; its conversations stay readable.';
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
    private readonly clock: Clock,
  ) {}

  async reap(): Promise<void> {
    await this.failAbandoned();
    await this.failUnreachable();
    await this.forgetUnremoved();
  }

  /** When the host is back, a resume starts the sandbox there. */
  private async failAbandoned(): Promise<void> {
    const abandoned = await this.lifecycle.abandonedSince(ago(this.clock, GRACE_SECONDS));
    await Promise.all(
      abandoned.map(({ id, hostId, status, updatedAt }) => {
        const statusDetail = `Its host ${hostId} is gone: no process of that host runs. ${WAIT_OR_DELETE}`;
        return this.sandboxes.transition(id, 'fail', {
          change: { statusDetail },
          condition: { status, updatedAt },
        });
      }),
    );
  }

  /** Unreachable sandboxes would use up quota for ever. One that still answers outlived its service, and stays. */
  private async failUnreachable(): Promise<void> {
    const unwatched = await this.lifecycle.runningOnLostHosts(ago(this.clock, GRACE_SECONDS), GRACE_SECONDS);
    await Promise.all(
      unwatched.map(async (sandbox) => {
        if ((await this.idleness.activity(sandbox)) !== null) {
          return;
        }
        const { id, hostId, generation, updatedAt } = sandbox;
        const statusDetail = `It does not answer, and its host ${hostId} is gone: no process of that host runs. ${WAIT_OR_DELETE}`;
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
      ago(this.clock, REMOVAL_GRACE_SECONDS),
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
}

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
    const unresponsiveBefore = this.unresponsive;
    this.unresponsive = new Map();
    // Many may stay as they are: those in use, and those that report nothing.
    for (let after: string | undefined = ''; after !== undefined;) {
      const candidates = await this.lifecycle.idleSince(ago(this.clock, idleTimeoutSeconds), after);
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
      after = candidates.at(-1)?.id;
    }
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
      await this.sandboxes.update(id, { lastActivityAt: ago(this.clock, idleSeconds) }, asSeen);
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
      const old = await this.lifecycle.stoppedSince(ago(this.clock, retentionSeconds));
      await Promise.all(
        old.map(({ id, status, updatedAt }) =>
          this.sandboxes.transition(id, 'remove', { condition: { status, updatedAt }, cause: 'retention' }),
        ),
      );
    }
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

function ago(clock: Clock, seconds: number): Date {
  return new Date(clock.now() - seconds * 1000);
}
