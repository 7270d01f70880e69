import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { EgressRulebook } from '../../config/egress-rulebook.js';
import { SettingsRepository } from '../../settings/settings.repository.js';
import { type SandboxSpec, SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { ownRules } from './lifecycle/sandbox-rules.js';
import { type SandboxSettings, toLaunch, toOverrides } from './lifecycle/launch-plan.js';
import { pausedNotes, SandboxQuota } from './sandbox-quota.js';
import type { OwnRules, Sandbox, SandboxOverrides } from './sandbox.entity.js';
import { SandboxRepository } from './sandbox.repository.js';
import { newSandboxId } from './session-key.js';
import { WarmSandboxKeeper } from './warm/warm-sandbox.keeper.js';

export interface SandboxPlan {
  userId: string;
  spec: SandboxSpec;
  overrides: SandboxOverrides | null;
  rules: OwnRules[];
  /** Sentences for the user about settings without effect. */
  notes: string[];
  evictable: Sandbox[] | null;
}

interface CreationOptions {
  /** From `newSandboxId()`; null takes a warm sandbox if one is ready, else a new id. */
  id?: string | null;
  hostId?: string;
  keepAliveSeconds?: number;
  /** See `Sandbox.cause`. */
  cause?: Record<string, string> | undefined;
  /** It is set up for an agent, which begins afterwards. */
  hasSetup?: boolean;
}

interface CreatedSandbox {
  id: string;
  paused: readonly string[];
}

/** Makes rows of sandboxes within the quota of their users; a worker of the row's host starts them. */
@Injectable()
export class SandboxCreator {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly quota: SandboxQuota,
    private readonly warm: WarmSandboxKeeper,
    private readonly settings: SettingsRepository,
    private readonly specs: SandboxSpecs,
    private readonly backend: SandboxBackend,
    private readonly rulebook: EgressRulebook,
  ) {}

  /**
   * Call before the transaction of `create`, because asking agent servers may take seconds.
   * @param known the user's settings over the organization's, where the caller has read them
   * @param egress rules of the start, as they were written and checked
   */
  async plan(
    userId: string,
    specId: string | null,
    known?: SandboxSettings,
    egress: object | null = null,
  ): Promise<SandboxPlan> {
    const spec = (specId === null ? null : this.specs.find(specId)) ?? this.specs.default;
    const [settings, evictable] = await Promise.all([
      known ?? this.settings.effective(userId),
      this.quota.findEvictable(userId),
    ]);
    const overrides = toOverrides(settings);
    const { notes } = toLaunch(spec, overrides, this.backend.kind);
    const rules = ownRules({ ...settings.egress, start: egress }, this.rulebook);
    return { userId, spec, overrides, rules, notes, evictable };
  }

  /**
   * Inserts a STARTING row; call `SandboxWorkerSignal.wake` after the commit.
   * @throws DomainError as `SandboxQuota.claim`; conflict (`stored_sandbox_limit`)
   */
  async create(
    manager: EntityManager,
    { userId, spec, overrides, rules, evictable }: SandboxPlan,
    { id: givenId = null, hostId, keepAliveSeconds = 0, cause, hasSetup }: CreationOptions = {},
  ): Promise<CreatedSandbox> {
    const paused = await this.quota.claim(manager, userId, evictable, givenId);
    await this.quota.assertStorable(manager, userId);
    const egressRules = rules.length === 0 ? null : rules;
    const warm =
      givenId === null ? await this.warm.claim(manager, spec, { overrides, egressRules }, hostId) : null;
    const id = givenId ?? warm?.id ?? newSandboxId();
    await this.sandboxes.insert(manager, {
      id,
      userId,
      specId: spec.id,
      statusDetail: pausedNotes(paused).join(' ') || null,
      backend: this.backend.kind,
      hostId,
      overrides,
      startTimeoutSeconds: spec.startTimeoutSeconds,
      keepAliveSeconds,
      cause: cause ?? null,
      egressAuthority: warm?.egressAuthority ?? null,
      egressMode: warm?.egressMode ?? null,
      egressRules,
      egressSetup:
        hasSetup && (egressRules !== null || this.rulebook.layersOf(spec).length > 0) ? 'open' : null,
    });
    return { id, paused };
  }
}
