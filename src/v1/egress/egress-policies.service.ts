import { Injectable } from '@nestjs/common';
import { destinationsOf } from '@slipway/common/http/address-rules.js';
import type { EgressPolicy } from '@slipway/egress-proxy/protocol.js';
import { AppConfig } from '../../config/app-config.js';
import type { EgressRuleSet } from '../../config/egress-rules.js';
import {
  OUTSIDE_MAX_AGE_SECONDS,
  OutsideCredentials,
} from '../app-conversations/outside-credentials/outside-credentials.js';
import { EgressRulebook } from '../sandbox-specs/egress-rulebook.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxEgress } from '../sandboxes/lifecycle/egress-access.js';
import { SandboxCallback } from '../sandboxes/sandbox-callback.js';
import { configuredHosts } from '../sandboxes/sandbox-backend.factory.js';
import { isOutside } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { OpenHosts } from './open-hosts.js';

/** A change of rules or settings reaches running sandboxes within this time. */
const MAX_AGE_SECONDS = 5;
/** Of a specification that is not configured any more. */
const NOTHING: EgressRuleSet = { default: 'deny', allow: [], deny: [] };

/** What egress proxies ask. */
@Injectable()
export class EgressPoliciesService {
  constructor(
    private readonly egress: SandboxEgress,
    private readonly sandboxes: SandboxRepository,
    private readonly specs: SandboxSpecs,
    private readonly rulebook: EgressRulebook,
    private readonly openHosts: OpenHosts,
    private readonly credentials: OutsideCredentials,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
  ) {}

  /** Null where no sandbox that runs has the credential. @throws SecretDecryptionError */
  async policy(credential: string): Promise<EgressPolicy | null> {
    const id = this.egress.holder(credential);
    const sandbox = id === null ? null : await this.sandboxes.find(id);
    const authority = sandbox && this.egress.authorityOf(sandbox);
    if (!sandbox || !authority || !['STARTING', 'RUNNING'].includes(sandbox.status)) {
      return null;
    }
    const spec = this.specs.find(sandbox.specId);
    const layers = spec === null ? [NOTHING] : this.rulebook.layersOf(spec);
    const hasOutside = isOutside(sandbox.egressMode);
    const holder = { sandboxId: sandbox.id, userId: sandbox.userId };
    const [open, injections] = await Promise.all([
      this.openHosts.of(sandbox.userId, sandbox.id),
      hasOutside ? this.credentials.injections(holder) : [],
    ]);
    return {
      sandbox: sandbox.id,
      phase: 'agent',
      layers: layers.map((layer) => ({ ...layer, allow: [...layer.allow, ...open] })),
      open: [],
      injections,
      networks: [
        ...this.config.sandboxes.networkAllow,
        ...configuredHosts(this.config),
        ...destinationsOf(this.callback.webhooksUrl),
      ],
      authority,
      once: [],
      maxAgeSeconds: hasOutside ? OUTSIDE_MAX_AGE_SECONDS : MAX_AGE_SECONDS,
    };
  }
}
