import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AppConfig } from '../../../config/app-config.js';
import { type Instrument, Metrics } from '../../../observability/metrics.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { SandboxOverrides } from '../sandbox.entity.js';
import { WarmSandboxRepository } from './warm-sandbox.repository.js';
import { WarmTemplates } from './warm-templates.js';

const OUTCOMES = ['warm', 'none_ready', 'not_suitable'] as const;

type ClaimListener = (fingerprint: string) => void;

@Injectable()
export class WarmSandboxClaims {
  private listener: ClaimListener | null = null;
  private readonly claims: Instrument<{ outcome: typeof OUTCOMES }>;

  constructor(
    private readonly templates: WarmTemplates,
    private readonly repository: WarmSandboxRepository,
    private readonly config: AppConfig,
    metrics: Metrics,
  ) {
    this.claims = metrics.addCounter({
      name: 'slipway_warm_claims_total',
      help: 'New sandboxes while SANDBOX_WARM is set: a warm one, none was ready, or none that suits the request',
      labels: { outcome: OUTCOMES },
    });
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
    const fingerprint = this.templates.matching(spec, overrides);
    if (fingerprint === null) {
      this.claims.record({ outcome: 'not_suitable' });
      return null;
    }
    const id = await this.repository.claim(manager, hostId, fingerprint);
    this.claims.record({ outcome: id === null ? 'none_ready' : 'warm' });
    this.listener?.(fingerprint);
    return id;
  }
}
