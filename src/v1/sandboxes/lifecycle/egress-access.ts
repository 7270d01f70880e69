import { Injectable, Logger } from '@nestjs/common';
import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import { CredentialsPlace } from '../../../config/credentials-place.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import type { EgressAccess, EgressKind } from '@slipway/sandboxes/sandbox-backend.js';
import { type EgressMode, isRestricted, type Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { EGRESS_AUTHORITY, isSandboxId } from '../session-key.js';
import { type WarmSandbox, WarmSandboxRepository } from '../warm/warm-sandbox.repository.js';
import { type RuledSandbox, SandboxRules } from './sandbox-rules.js';

const authoritySchema = z.object({ certificate: z.string(), key: z.string() });
/** Certificate and key in PEM. */
export type SandboxAuthority = z.infer<typeof authoritySchema>;

/** For how long a proxy may go on by the rules of a setup, in seconds. */
export const SETUP_MAX_AGE_SECONDS = 1;
/** By then every proxy has asked again, and has ended what they alone allowed: it compares once a second. */
const SETUP_OVER_MS = 3_000;

/** The way out of sandboxes that need the proxy: the credential for it, and the authority by which it opens TLS. */
@Injectable()
export class SandboxEgress {
  private readonly logger = new Logger('Sandboxes');
  private prepare: () => Promise<void> = () => Promise.resolve();

  constructor(
    private readonly rules: SandboxRules,
    private readonly sandboxes: SandboxRepository,
    private readonly warm: WarmSandboxRepository,
    private readonly specs: SandboxSpecs,
    private readonly cipher: SecretCipher,
    private readonly config: AppConfig,
    private readonly place: CredentialsPlace,
    private readonly clock: Clock,
  ) {}

  /** Called before a sandbox is started that needs the proxy. */
  beforeUse(prepare: () => Promise<void>): void {
    this.prepare = prepare;
  }

  /** What its sandboxes need the proxy for; null: nothing. */
  mode(spec: SandboxSpec, sandbox: RuledSandbox | null = null): EgressMode | null {
    const hasRules = this.rules.of(spec, sandbox).length > 0;
    const isOutside = this.place.isOutside(spec.runtime);
    return hasRules ? (isOutside ? 'both' : 'rules') : isOutside ? 'credentials' : null;
  }

  /** Pauses a sandbox whose rules have come or gone: its network, open or with no way but the proxy, was made when it started. */
  async pauseOutdated(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    const spec = sandbox && this.specs.find(sandbox.specId);
    if (!spec || !this.isOutdated(spec, sandbox)) {
      return;
    }
    const statusDetail =
      'Paused because the rules about what it may reach (SANDBOX_EGRESS) have come or gone since its start, or where credentials are (SANDBOX_CREDENTIALS) has changed. Resume it.';
    const condition = { status: 'RUNNING' as const, generation: sandbox.generation };
    if (
      await this.sandboxes.transition(id, 'pause', { change: { statusDetail }, condition, cause: 'rules' })
    ) {
      this.logger.warn('sandbox paused: its rules have come or gone', { sandbox_id: id });
    }
  }

  /**
   * Whether the network of a sandbox that runs is of another kind than its rules need by now, or the operator has decided that
   * its credentials belong elsewhere. Where nothing is configured, replicas may have found different things.
   */
  private isOutdated(spec: SandboxSpec, sandbox: Sandbox): boolean {
    const mode = this.mode(spec, sandbox);
    return this.place.isConfigured
      ? mode !== sandbox.egressMode
      : isRestricted(mode) !== isRestricted(sandbox.egressMode);
  }

  /** Undefined where it needs no proxy. A sandbox has an authority from its first start with one until one without. */
  async access(spec: SandboxSpec, sandbox: Sandbox): Promise<EgressAccess | undefined> {
    const egressMode = this.mode(spec, sandbox);
    const kind = this.kind(spec, sandbox);
    const known = this.authorityOf(sandbox);
    if (kind === undefined) {
      if (known !== null) {
        await this.change(sandbox, { egressAuthority: null, egressMode });
      }
      return undefined;
    }
    await this.prepare();
    const authority = known ?? (await makeAuthority(sandbox.id));
    if (known === null) {
      await this.change(sandbox, { egressAuthority: this.encrypted(sandbox.id, authority), egressMode });
    } else if (sandbox.egressMode !== egressMode) {
      await this.change(sandbox, { egressMode });
    }
    return this.accessOf(sandbox.id, kind, authority);
  }

  /** What the way out of such a sandbox has in common with others; undefined where it needs no proxy. */
  kind(spec: SandboxSpec, sandbox: RuledSandbox): EgressKind | undefined {
    const mode = this.mode(spec, sandbox);
    return mode === null
      ? undefined
      : {
          port: this.config.egress.port,
          isOnlyWay: mode !== 'credentials',
          opensTls: mode !== 'rules' || this.rules.opensTls(spec, sandbox),
          derivation: this.cipher.derive(purpose('')),
        };
  }

  /** The way out of one that is kept warm, by the credential and the authority that it keeps with its owner. */
  async warmAccess(kind: EgressKind | undefined, id: string): Promise<EgressAccess | undefined> {
    if (kind === undefined) {
      return undefined;
    }
    await this.prepare();
    const authority = await makeAuthority(id);
    if (!(await this.warm.keepAuthority(id, this.encrypted(id, authority)))) {
      throw new Error('the warm sandbox was dropped meanwhile');
    }
    return this.accessOf(id, kind, authority);
  }

  /**
   * From here on the rules of the agent hold, for good. Waits until nothing goes on by those of the setup, where these are
   * others. Repeatable.
   */
  async endSetup(id: string): Promise<void> {
    const sandbox = await this.sandboxes.find(id);
    if (!sandbox || sandbox.egressSetup === null) {
      return;
    }
    const spec = this.specs.find(sandbox.specId);
    const now = await this.rules.own(sandbox);
    const all = [...now, ...(spec === null ? [] : this.rules.of(spec, sandbox))];
    if (all.some(({ setup }) => setup !== undefined)) {
      await this.sandboxes.update(id, { egressSetup: 'closing' });
      await this.clock.wait(SETUP_OVER_MS);
    }
    await this.sandboxes.update(id, { egressSetup: null });
  }

  private accessOf(
    id: string,
    { port, isOnlyWay, opensTls }: EgressKind,
    { certificate }: SandboxAuthority,
  ): EgressAccess {
    const credential = `${id}.${this.cipher.derive(purpose(id))}`;
    return { port, credential, authority: opensTls ? certificate : null, isOnlyWay };
  }

  /** Whose credential this is; null for any other text. Which of the two a sandbox is changes with its claim. */
  async holder(credential: string): Promise<{ sandbox: Sandbox } | { warm: WarmSandbox } | null> {
    const [id = '', secret = '', ...more] = credential.split('.');
    if (more.length > 0 || !isSandboxId(id) || !this.cipher.hasDerived(purpose(id), secret)) {
      return null;
    }
    const known = await this.sandboxes.find(id);
    const warm = known === null ? await this.warm.find(id) : null;
    const sandbox = known ?? (warm === null ? await this.sandboxes.find(id) : null);
    return sandbox !== null ? { sandbox } : warm && { warm };
  }

  /** Returns null before its first start with a proxy. */
  authorityOf({ id, egressAuthority }: Pick<Sandbox, 'id' | 'egressAuthority'>): SandboxAuthority | null {
    return egressAuthority === null
      ? null
      : authoritySchema.parse(
          parseJson(this.cipher.decrypt(egressAuthority, EGRESS_AUTHORITY.binding({ id }))),
        );
  }

  private encrypted(id: string, authority: SandboxAuthority): string {
    return this.cipher.encrypt(JSON.stringify(authority), EGRESS_AUTHORITY.binding({ id }));
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
}

async function makeAuthority(id: string): Promise<SandboxAuthority> {
  // Most installations have no rules, and never load the certificates' library.
  const { newAuthority } = await import('@slipway/egress-proxy/new-authority.js');
  return await newAuthority(id);
}

/** What is derived stays the same over restarts. */
function purpose(sandboxId: string): string {
  return `sandboxes.egress:${sandboxId}`;
}
