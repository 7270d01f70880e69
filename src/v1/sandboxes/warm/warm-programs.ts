import { isDeepStrictEqual } from 'node:util';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { AgentServerClient, type Liveness } from '@slipway/agent-client/agent-server.client.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import {
  removeSandbox,
  SandboxBackend,
  type SandboxFacts,
  type WarmStarts,
  type WarmTemplate,
} from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxEgress } from '../lifecycle/egress-access.js';
import { LaunchPlanner } from '../lifecycle/launch-plan.js';
import { AgentServerProbe, StartDeadline } from '../lifecycle/sandbox-starter.js';
import type { EgressMode, Sandbox } from '../sandbox.entity.js';
import { type WarmSandbox, WarmSandboxRepository } from './warm-sandbox.repository.js';

const FIRST_MS = 2_000;
const MOST_MS = 5 * 60_000;
/** After this long without a failure, the next one counts as the first. */
const FORGET_MS = 15 * 60_000;

interface Failures {
  count: number;
  lastAt: number;
  retryAt: number;
}

/** Delays the next warm sandbox after one that failed, or ended by itself. */
export class WarmBackOff {
  private readonly failures = new Map<string, Failures>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  allows(fingerprint: string): boolean {
    return this.clock.now() >= (this.failures.get(fingerprint)?.retryAt ?? 0);
  }

  failed(fingerprint: string): number {
    const now = this.clock.now();
    const known = this.failures.get(fingerprint);
    const before = known !== undefined && now - known.lastAt < FORGET_MS ? known.count : 0;
    const delayMs = Math.min(FIRST_MS * 2 ** before, MOST_MS);
    this.failures.set(fingerprint, { count: before + 1, lastAt: now, retryAt: now + delayMs });
    return delayMs;
  }

  succeeded(fingerprint: string): void {
    this.failures.delete(fingerprint);
  }
}

/** What decides of a request whether it can have a warm one. */
export type WantedSandbox = Pick<Sandbox, 'overrides' | 'egressRules'>;

export interface WarmPlan {
  spec: SandboxSpec;
  template: WarmTemplate;
  fingerprint: string;
}

/** What runs in warm sandboxes: how it is started, looked at and removed. */
@Injectable()
export class WarmPrograms {
  readonly backOff: WarmBackOff;
  private readonly logger = new Logger('Sandboxes');

  constructor(
    private readonly repository: WarmSandboxRepository,
    private readonly specs: SandboxSpecs,
    private readonly planner: LaunchPlanner,
    private readonly egress: SandboxEgress,
    private readonly backend: SandboxBackend,
    private readonly probe: AgentServerProbe,
    private readonly client: AgentServerClient,
    private readonly clock: Clock,
  ) {
    this.backOff = new WarmBackOff(clock);
  }

  /** Each specification whose program can wait for a key, anew: images may have been built meanwhile. */
  async plan(warm: WarmStarts): Promise<WarmPlan[]> {
    const plans = this.specs.all().map(async (spec) => {
      const template = this.template(spec, { overrides: null, egressRules: null });
      const fingerprint = await warm.fingerprint(template);
      return fingerprint === null ? [] : [{ spec, template, fingerprint }];
    });
    return (await Promise.all(plans)).flat();
  }

  /** Null unless one of the plan is what such a start would make. */
  suits(plan: WarmPlan, spec: SandboxSpec, wanted: WantedSandbox): { egressMode: EgressMode | null } | null {
    return isDeepStrictEqual(this.template(spec, wanted), plan.template)
      ? { egressMode: this.egress.mode(spec, wanted) }
      : null;
  }

  private template(spec: SandboxSpec, wanted: WantedSandbox): WarmTemplate {
    const { template } = this.planner.template(spec, wanted.overrides);
    return { ...template, egress: this.egress.kind(spec, wanted) };
  }

  /** Never throws: what fails is tried again later. */
  async start(
    warm: WarmStarts,
    { spec, template, fingerprint }: WarmPlan,
    { id, stopped }: { id: string; stopped: AbortSignal },
  ): Promise<void> {
    const deadline = new StartDeadline(this.clock, spec.startTimeoutSeconds, stopped);
    try {
      const egress = await this.egress.warmAccess(template.egress, id);
      const onProgress = (): void => void deadline.extend();
      await warm.start({ ...template, egress, id, onProgress }, deadline.signal);
      deadline.extend();
      await this.probe.waitUntilReady({ id, sessionKey: null }, deadline);
      // Another replica may have seen it first, and it may have a user by now. If it was dropped, it is an orphan.
      if (await this.repository.markReady(id)) {
        this.logger.log('warm sandbox ready', { sandbox_id: id, sandbox_spec_id: spec.id });
      }
    } catch (error) {
      if (stopped.aborted) {
        return;
      }
      const retryInMs = this.backOff.failed(fingerprint);
      this.logger.warn('failed to start warm sandbox', {
        sandbox_id: id,
        sandbox_spec_id: spec.id,
        retry_in_s: Math.round(retryInMs / 1000),
        error: errorMessage(error),
      });
      await this.dropFailed(id);
    } finally {
      deadline.close();
    }
  }

  /** Null: nothing runs that could answer. */
  async look(id: string): Promise<Pick<SandboxFacts, 'state'> & { liveness: Liveness | null }> {
    const { state, address } = await this.backend.inspect(id);
    const isThere = state === 'running' && address !== null;
    return { state, liveness: isThere ? await this.client.liveness(address) : null };
  }

  /** The row first, so that it cannot be claimed any more. */
  async remove({ id, specId }: WarmSandbox, message: string): Promise<void> {
    if (await this.repository.drop(id)) {
      // Any other may have an owner whom a restored database does not know: the rules for orphans apply.
      if ((await this.look(id)).liveness === 'unassigned') {
        await removeSandbox(this.backend, id);
      }
      this.logger.log(message, { sandbox_id: id, sandbox_spec_id: specId });
    }
  }

  private async dropFailed(id: string): Promise<void> {
    try {
      if (await this.repository.drop(id)) {
        await removeSandbox(this.backend, id);
      }
    } catch (error) {
      // The reconciler removes it as an orphan if its row is gone; else the next check drops it.
      this.logger.warn('failed to remove warm sandbox', { sandbox_id: id, error: errorMessage(error) });
    }
  }
}
