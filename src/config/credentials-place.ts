import { Injectable } from '@nestjs/common';
import { AppConfig } from './app-config.js';

/** Says why sandboxes that a runtime runs cannot have their credentials outside; null: they can. */
type Obstacle = (runtime: string | null) => string | null;

const KEPT = 'credentials stay outside of sandboxes, which have placeholders';

/**
 * Where the credentials of sandboxes are that are started from now on: as `SANDBOX_CREDENTIALS` says, else outside where the
 * backend, once it is prepared, has found that this can be kept.
 */
@Injectable()
export class CredentialsPlace {
  private found: Obstacle | null = null;

  constructor(private readonly config: AppConfig) {}

  /** What the operator has not decided changes nothing of sandboxes that run. */
  get isConfigured(): boolean {
    return this.config.egress.credentials !== null;
  }

  /** Called once the backend is prepared. */
  decide(found: Obstacle): void {
    this.found = found;
  }

  isOutside(runtime: string | null = null): boolean {
    const { credentials } = this.config.egress;
    return credentials === null ? this.obstacle(runtime) === null : credentials === 'outside';
  }

  /** For reports of the configuration. */
  get shown(): string {
    const where = this.isOutside() ? 'outside' : 'inside';
    return this.isConfigured ? where : `${where} (by default)`;
  }

  /** Of the decision, for the log. */
  line(runtimes: readonly (string | null)[]): { level: 'log' | 'warn'; text: string } {
    if (this.isConfigured) {
      const text = this.isOutside() ? KEPT : 'credentials are in sandboxes';
      return { level: 'log', text: `${text} (SANDBOX_CREDENTIALS)` };
    }
    const reasons = new Set(runtimes.flatMap((runtime) => this.obstacle(runtime) ?? []));
    if (reasons.size === 0) {
      return { level: 'log', text: KEPT };
    }
    const which = runtimes.some((runtime) => this.isOutside(runtime)) ? 'some sandboxes' : 'sandboxes';
    return {
      level: 'warn',
      text: `CREDENTIALS ARE IN ${which.toUpperCase()}, where agents can read them: ${[...reasons].join('; ')}. SANDBOX_CREDENTIALS=inside says that this is wanted`,
    };
  }

  private obstacle(runtime: string | null): string | null {
    if (this.found === null) {
      return 'it is not known yet whether they can stay outside';
    }
    const [proxy] = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].filter(
      (name) => this.config.sandboxes.environment[name] !== undefined,
    );
    return proxy === undefined
      ? this.found(runtime)
      : `the egress proxy connects to hosts itself and does not use ${proxy}; where it reaches them, set SANDBOX_CREDENTIALS=outside`;
  }
}
