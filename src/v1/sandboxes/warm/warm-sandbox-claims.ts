import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AppConfig } from '../../../config/app-config.js';
import { type Instrument, Metrics } from '../../../observability/metrics.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackend, type WarmTemplate } from '../backends/sandbox-backend.js';
import { LaunchPlanner } from '../lifecycle/launch-plan.js';
import type { SandboxOverrides } from '../sandbox.entity.js';
import { WarmSandboxRepository } from './warm-sandbox.repository.js';

export interface WarmPlan {
  spec: SandboxSpec;
  template: WarmTemplate;
  fingerprint: string;
}

const OUTCOMES = ['warm', 'none_ready', 'not_suitable'] as const;

type ClaimListener = (fingerprint: string) => void;

/** Which warm sandboxes are wanted here, and which of them suits a request. */
@Injectable()
export class WarmSandboxClaims {
  private plans: readonly WarmPlan[] = [];
  private listener: ClaimListener | null = null;
  private readonly claims: Instrument<{ outcome: typeof OUTCOMES }>;

  constructor(
    private readonly repository: WarmSandboxRepository,
    private readonly specs: SandboxSpecs,
    private readonly planner: LaunchPlanner,
    private readonly backend: SandboxBackend,
    private readonly config: AppConfig,
    metrics: Metrics,
  ) {
    this.claims = metrics.addCounter({
      name: 'slipway_warm_claims_total',
      help: 'New sandboxes while SANDBOX_WARM is set: a warm one, none was ready, or none that suits the request',
      labels: { outcome: OUTCOMES },
    });
  }

  /** Plans each specification whose program can wait for a key anew: images may have been built meanwhile. */
  async plan(): Promise<readonly WarmPlan[]> {
    const { warm } = this.backend;
    if (warm === null || this.config.sandboxes.warm === 0) {
      return [];
    }
    const plans = this.specs.all().map(async (spec) => {
      const { template } = this.planner.template(spec, null);
      const fingerprint = await warm.fingerprint(template);
      return fingerprint === null ? [] : [{ spec, template, fingerprint }];
    });
    return (await Promise.all(plans)).flat();
  }

  /** From now on, warm sandboxes are handed out by these plans. Check first that nobody has them. */
  offer(plans: readonly WarmPlan[]): void {
    this.plans = plans;
  }

  /** A process has one keeper. */
  onClaim(listener: ClaimListener): void {
    this.listener = listener;
  }

  /** Takes a matching warm sandbox; null when there is none. Give it an owner and a key in the same transaction. */
  async claim(
    manager: EntityManager,
    spec: SandboxSpec,
    overrides: SandboxOverrides | null,
    hostId: string,
  ): Promise<string | null> {
    if (this.config.sandboxes.warm === 0) {
      return null;
    }
    const fingerprint = this.matching(spec, overrides);
    if (fingerprint === null) {
      this.claims.record({ outcome: 'not_suitable' });
      return null;
    }
    const id = await this.repository.claim(manager, hostId, fingerprint);
    this.claims.record({ outcome: id === null ? 'none_ready' : 'warm' });
    this.listener?.(fingerprint);
    return id;
  }

  /** The fingerprint of warm sandboxes that are what a request asks for; null when none are. */
  private matching(spec: SandboxSpec, overrides: SandboxOverrides | null): string | null {
    const plan = this.plans.find((each) => each.spec.id === spec.id);
    if (!plan) {
      return null;
    }
    const { template } = this.planner.template(spec, overrides);
    return isDeepStrictEqual(template, plan.template) ? plan.fingerprint : null;
  }
}
