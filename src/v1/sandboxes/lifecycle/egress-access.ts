import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import { EgressRulebook } from '../../sandbox-specs/egress-rulebook.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import { type EgressAccess, SandboxBackendError } from '@slipway/sandboxes/sandbox-backend.js';
import type { EgressMode, Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { EGRESS_AUTHORITY, isSandboxId } from '../session-key.js';

const authoritySchema = z.object({ certificate: z.string(), key: z.string() });
/** Certificate and key in PEM. */
export type SandboxAuthority = z.infer<typeof authoritySchema>;

/** The way out of sandboxes that have rules: the credential for the proxy, and the authority by which it opens TLS. */
@Injectable()
export class SandboxEgress {
  constructor(
    private readonly rulebook: EgressRulebook,
    private readonly sandboxes: SandboxRepository,
    private readonly cipher: SecretCipher,
    private readonly config: AppConfig,
  ) {}

  /** What its sandboxes need the proxy for; null: nothing. Other programs than ours may not trust its authority. */
  mode(spec: SandboxSpec): EgressMode | null {
    const isRestricted = this.rulebook.layersOf(spec).length > 0;
    const isOutside = this.config.egress.credentials === 'outside' && spec.program.kind === 'native';
    return isRestricted ? (isOutside ? 'both' : 'rules') : isOutside ? 'credentials' : null;
  }

  /**
   * Undefined where nothing is restricted. A sandbox has an authority from its first start with rules until one without.
   * @throws SandboxBackendError where the backend cannot keep the rules
   */
  async access(spec: SandboxSpec, sandbox: Sandbox): Promise<EgressAccess | undefined> {
    const egressMode = this.mode(spec);
    const known = this.authorityOf(sandbox);
    if (egressMode === null) {
      if (known !== null) {
        await this.change(sandbox, { egressAuthority: null, egressMode });
      }
      return undefined;
    }
    const { backend } = this.config.sandboxes;
    if (backend !== 'process') {
      throw new SandboxBackendError(
        `Its rules (SANDBOX_EGRESS, or \`egress\` of ${spec.id}) cannot be kept by ${backend} sandboxes yet: use SANDBOX_BACKEND=process, or take them away.`,
      );
    }
    const { certificate } = known ?? (await this.makeAuthority(sandbox, egressMode));
    if (known !== null && sandbox.egressMode !== egressMode) {
      await this.change(sandbox, { egressMode });
    }
    return {
      port: this.config.egress.port,
      credential: this.credential(sandbox.id),
      authority: egressMode !== 'rules' || this.opensTls(spec) ? certificate : null,
      isOnlyWay: egressMode !== 'credentials',
    };
  }

  /** Whether requests have to be seen for the rules to be kept. */
  private opensTls(spec: SandboxSpec): boolean {
    const rules = this.rulebook.layersOf(spec).flatMap(({ allow }) => allow);
    return rules.some(({ methods, paths }) => methods !== undefined || paths !== undefined);
  }

  /** The id of the sandbox whose credential this is; null for any other text. */
  holder(credential: string): string | null {
    const [id = '', secret = '', ...more] = credential.split('.');
    return more.length === 0 && isSandboxId(id) && this.cipher.hasDerived(purpose(id), secret) ? id : null;
  }

  /** Returns null before its first start with rules. */
  authorityOf({ id, egressAuthority }: Pick<Sandbox, 'id' | 'egressAuthority'>): SandboxAuthority | null {
    return egressAuthority === null
      ? null
      : authoritySchema.parse(
          parseJson(this.cipher.decrypt(egressAuthority, EGRESS_AUTHORITY.binding({ id }))),
        );
  }

  private async makeAuthority(sandbox: Sandbox, egressMode: EgressMode): Promise<SandboxAuthority> {
    const { id } = sandbox;
    // Most installations have no rules, and never load the certificates' library.
    const { newAuthority } = await import('@slipway/egress-proxy/new-authority.js');
    const authority = await newAuthority(id);
    const egressAuthority = this.cipher.encrypt(JSON.stringify(authority), EGRESS_AUTHORITY.binding({ id }));
    await this.change(sandbox, { egressAuthority, egressMode });
    return authority;
  }

  private async change(
    { id, leaseOwner }: Sandbox,
    change: Partial<Pick<Sandbox, 'egressAuthority' | 'egressMode'>>,
  ): Promise<void> {
    const condition = { status: 'STARTING' as const, leaseOwner: leaseOwner ?? '' };
    if (!(await this.sandboxes.update(id, change, condition))) {
      throw new Error('the sandbox has another status or another worker by now');
    }
  }

  private credential(id: string): string {
    return `${id}.${this.cipher.derive(purpose(id))}`;
  }
}

/** What is derived stays the same over restarts. */
function purpose(sandboxId: string): string {
  return `sandboxes.egress:${sandboxId}`;
}
