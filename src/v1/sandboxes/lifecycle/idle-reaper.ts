import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { RepeatedWork } from '../../../common/async.js';
import { Clock } from '../../../common/clock.js';
import { errorStack } from '../../../common/errors/error-message.js';
import { AppConfig } from '../../../config/app-config.js';
import type { AgentServerActivity } from '../../agent-servers/agent-server.client.js';
import { HostIdentity } from '../host-identity.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { durationText } from './failure-messages.js';
import { SandboxIdleness } from './idleness.js';

/** How long another host may be late. */
const PATIENCE_SECONDS = 60;
/** How long a host that is gone may be awaited to remove something. */
const REMOVAL_PATIENCE_SECONDS = 86_400;
/** An agent server that nobody heard of for so long, in a sandbox that nobody used, hangs. */
const MOST_SILENT_SECONDS = 600;

/** Lets sandboxes of this host rest that nobody uses: first their programs, much later their files. */
@Injectable()
export class IdleReaper {
  private readonly logger = new Logger('Sandboxes');
  /** Since when agent servers do not answer, epoch milliseconds by sandbox and start. */
  private silent = new Map<string, number>();

  constructor(
    private readonly store: SandboxRepository,
    private readonly idleness: SandboxIdleness,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** Pauses what has been idle for `SANDBOX_IDLE_TIMEOUT_SECONDS`, and gives up what hangs for long after that. */
  async pauseIdle(): Promise<void> {
    const { idleTimeoutSeconds } = this.config.sandboxes;
    if (idleTimeoutSeconds === 0) {
      return;
    }
    const quiet = await this.store.quietSince(this.host.id, this.ago(idleTimeoutSeconds));
    const silentBefore = this.silent;
    this.silent = new Map();
    await Promise.all(
      quiet.map(async (sandbox) => {
        if (this.idleness.isUsed(sandbox)) {
          return;
        }
        const activity = await this.idleness.activity(sandbox);
        if (activity !== null) {
          await this.pauseIfIdle(sandbox, activity, idleTimeoutSeconds);
        } else if (!(await this.idleness.answers(sandbox))) {
          await this.giveUpSilent(sandbox, silentBefore);
        }
      }),
    );
  }

  /** Removes what has not run for `SANDBOX_RETENTION_SECONDS`. */
  async removeOld(): Promise<void> {
    const { retentionSeconds } = this.config.sandboxes;
    if (retentionSeconds > 0) {
      const old = await this.store.stoppedSince(this.host.id, this.ago(retentionSeconds));
      await Promise.all(
        old.map(({ id, status, updatedAt }) => this.store.move(id, 'remove', {}, { status, updatedAt })),
      );
    }
  }

  /** Gives up what a host that is gone should have started or stopped; it comes back from the error by a resume there. */
  async giveUpAbandoned(): Promise<void> {
    const abandoned = await this.store.abandoned(this.host.id, this.ago(PATIENCE_SECONDS));
    await Promise.all(
      abandoned.map(({ id, hostId, status, updatedAt }) => {
        const statusDetail = `Its host ${hostId} does nothing about it: no process of that host runs.`;
        return this.store.move(id, 'fail', { statusDetail }, { status, updatedAt });
      }),
    );
  }

  /**
   * Says so of sandboxes that neither their host nor their agent server has anything of any more: they would hold their
   * user's places for ever. One that still answers outlived its host's service, and is left alone.
   */
  async giveUpLost(): Promise<void> {
    const unwatched = await this.store.withoutHost(
      this.host.id,
      this.ago(PATIENCE_SECONDS),
      PATIENCE_SECONDS,
    );
    await Promise.all(
      unwatched.map(async (sandbox) => {
        const { id, hostId, generation, updatedAt } = sandbox;
        if ((await this.idleness.activity(sandbox)) === null) {
          const statusDetail = `It does not answer, and no process of its host ${hostId} runs.`;
          await this.store.move(id, 'fail', { statusDetail }, { status: 'RUNNING', generation, updatedAt });
        }
      }),
    );
  }

  /**
   * Forgets what a host that is gone should have removed: a removal has no deadline, and nobody sees the row. Whatever
   * there still is of it becomes an orphan, which its host removes if it comes back, or another one at the same engine.
   */
  async forgetUnremoved(): Promise<void> {
    const unremoved = await this.store.unremoved(
      this.host.id,
      this.ago(REMOVAL_PATIENCE_SECONDS),
      REMOVAL_PATIENCE_SECONDS,
    );
    await Promise.all(
      unremoved.map(async ({ id, hostId }) => {
        if (await this.store.delete(id, { status: 'DELETING' })) {
          this.logger.warn('forgot a removed sandbox whose host is gone: its files stay there', {
            sandbox_id: id,
            host_id: hostId,
          });
        }
      }),
    );
  }

  /** Unless its agent server knows of something later than the row does, or begins something in this moment. */
  private async pauseIfIdle(
    { id, generation, lastActivityAt }: Sandbox,
    activity: AgentServerActivity,
    timeoutSeconds: number,
  ): Promise<void> {
    const asSeen = { status: 'RUNNING' as const, generation, lastActivityAt };
    const idleSeconds = activity.running ? 0 : activity.idleSeconds;
    if (idleSeconds < timeoutSeconds) {
      await this.store.change(id, { lastActivityAt: this.ago(idleSeconds) }, asSeen);
      return;
    }
    const statusDetail = `Paused after ${durationText(timeoutSeconds)} without activity.`;
    await this.store.move(id, 'pause', { statusDetail }, asSeen);
  }

  /** It would keep its place for ever. Its program is stopped like that of every error; a resume starts it anew. */
  private async giveUpSilent(
    { id, generation, updatedAt }: Sandbox,
    silentBefore: ReadonlyMap<string, number>,
  ): Promise<void> {
    const key = `${id} ${generation}`;
    const since = silentBefore.get(key) ?? this.clock.now();
    if (this.clock.now() - since < MOST_SILENT_SECONDS * 1000) {
      this.silent.set(key, since);
      return;
    }
    const statusDetail = `Its agent server has not answered for ${durationText(MOST_SILENT_SECONDS)}: it was stopped. Resume the sandbox to start it again.`;
    await this.store.move(id, 'fail', { statusDetail }, { status: 'RUNNING', generation, updatedAt });
  }

  private ago(seconds: number): Date {
    return new Date(this.clock.now() - seconds * 1000);
  }
}

const LONGEST_MS = 30_000;
const SHORTEST_MS = 1_000;
/** A quarter of the time that is watched: nothing is paused or removed much later than it should be. */
const SHARE = 4;

/** Looks for sandboxes that nothing happened in for too long. */
@Injectable()
export class IdleReaperLoop implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('Sandboxes');
  private readonly loop: RepeatedWork;

  constructor(
    private readonly rest: IdleReaper,
    { sandboxes: { idleTimeoutSeconds, retentionSeconds } }: AppConfig,
  ) {
    const times = [idleTimeoutSeconds, retentionSeconds].filter((seconds) => seconds > 0);
    const everyMs = (Math.min(...times, Number.MAX_SAFE_INTEGER) * 1000) / SHARE;
    this.loop = new RepeatedWork(
      Math.min(Math.max(everyMs, SHORTEST_MS), LONGEST_MS),
      () => this.look(),
      (error) => {
        this.logger.error('looking for idle sandboxes failed', errorStack(error));
      },
    );
  }

  onApplicationBootstrap(): void {
    this.loop.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.loop.stop();
  }

  /**
   * Pauses what is idle, removes what has not run for too long, gives up what nobody works on or has, and forgets what
   * nobody will remove.
   */
  async look(): Promise<void> {
    await this.rest.pauseIdle();
    await this.rest.removeOld();
    await this.rest.giveUpAbandoned();
    await this.rest.giveUpLost();
    await this.rest.forgetUnremoved();
  }
}
