import { Injectable } from '@nestjs/common';
import { destinationsOf } from '@slipway/common/http/address-rules.js';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import { AppConfig } from '../../config/app-config.js';
import { OUTSIDE_MAX_AGE_SECONDS } from '../app-conversations/outside-credentials/outside-credentials.js';
import { SandboxEgress, SETUP_MAX_AGE_SECONDS } from '../sandboxes/lifecycle/egress-access.js';
import { NO_HOSTS } from '../sandboxes/lifecycle/sandbox-rules.js';
import { SandboxCallback } from '../sandboxes/sandbox-callback.js';
import { configuredHosts } from '../sandboxes/sandbox-backend.factory.js';
import { isOutside, type Sandbox } from '../sandboxes/sandbox.entity.js';
import { EgressPermitRepository } from './egress-permit.repository.js';
import { SandboxLayers } from './sandbox-layers.js';
import { tellablePolicy } from '@slipway/egress-rules/tellable-policy.js';

/** A change of rules or settings reaches running sandboxes within this time. */
const MAX_AGE_SECONDS = 5;

/** What egress proxies ask. */
@Injectable()
export class EgressPoliciesService {
  constructor(
    private readonly egress: SandboxEgress,
    private readonly layers: SandboxLayers,
    private readonly permits: EgressPermitRepository,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
  ) {}

  /** Null where no sandbox that runs, or is kept warm, has the credential. @throws SecretDecryptionError */
  async policy(credential: string): Promise<EgressPolicy | null> {
    const holder = await this.egress.holder(credential);
    if (holder === null) {
      return null;
    }
    if ('warm' in holder) {
      const authority = this.egress.authorityOf(holder.warm);
      return authority && closedPolicy(holder.warm.id, authority);
    }
    return await this.policyOf(holder.sandbox);
  }

  private async policyOf(sandbox: Sandbox): Promise<EgressPolicy | null> {
    const authority = this.egress.authorityOf(sandbox);
    if (!authority || !['STARTING', 'RUNNING'].includes(sandbox.status)) {
      return null;
    }
    const [found, once] = await Promise.all([this.layers.of(sandbox), this.permits.list(sandbox.id)]);
    if (found === null) {
      return null;
    }
    const { phase, layers, injections } = found;
    const maxAgeSeconds = isOutside(sandbox.egressMode) ? OUTSIDE_MAX_AGE_SECONDS : MAX_AGE_SECONDS;
    return tellablePolicy({
      sandbox: sandbox.id,
      phase,
      layers,
      injections,
      networks: [
        ...this.config.sandboxes.networkAllow,
        ...configuredHosts(this.config),
        ...destinationsOf(this.callback.webhooksUrl),
      ],
      authority,
      once,
      maxAgeSeconds: phase === 'setup' ? Math.min(maxAgeSeconds, SETUP_MAX_AGE_SECONDS) : maxAgeSeconds,
    });
  }
}

/** Of a sandbox without an owner, until it has one: no answer is kept, and in a setup not even while the service is away. */
function closedPolicy(sandbox: string, authority: EgressPolicy['authority']): EgressPolicy {
  const nothing = { injections: [], networks: [], once: [] };
  return { sandbox, phase: 'setup', layers: [NO_HOSTS], ...nothing, authority, maxAgeSeconds: 0 };
}
