import type { Duplex } from 'node:stream';
import { allowedOnce, type Asked, decideEgress, decideOnce } from './decision.js';
import type { Shares } from './shares.js';
import type { Dialer } from './dialer.js';
import type { PolicySource } from './policy-source.js';
import type { CallUsage } from './model-calls/model-usage.js';
import { type EgressPolicy, MAX_MODEL_NAME, type ReportedCall } from './protocol.js';
import { denied, RefusedError } from './refusal.js';
import type { ReportQueue } from './report-queue.js';
import type { SandboxAuthorities } from './sandbox-authority.js';
import type { ServiceConnection } from './service-connection.js';
import type { Target } from './target.js';
import type { UsageRequests } from './model-calls/usage-request.js';
import type { UpstreamAgent } from './upstream.js';
import { cleanText } from '@slipway/common/well-formed-text.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';

/** What all requests of a proxy use. */
export interface ProxyParts {
  service: ServiceConnection;
  policies: PolicySource;
  reports: ReportQueue;
  dialer: Dialer;
  authorities: SandboxAuthorities;
  /** Answers that are unpacked, each of which may take 20 MB. */
  unpacking: Shares;
  usage: UsageRequests;
  /** Requests, tunnels and WebSockets that are open, and end when their sandbox or their rule does. */
  lasting: Set<Lasting>;
}

/** A connection of a sandbox, or what is inside of its opened TLS. */
export interface Client {
  socket: Duplex;
  /** Null until its first request has shown its credential. */
  caller: { sandbox: string; credential: string } | null;
  agent: UpstreamAgent;
  /** Requests whose responses have not ended; they take turns. */
  underWay: number;
  /** How long their heads are together. */
  heads: number;
  turn: Promise<void>;
  /** What has to end with the connection. */
  leaving: Set<() => void>;
  /** The tunnel that is opened. */
  inside: { target: Target; isAllowedOnce: boolean } | null;
}

export interface Lasting {
  credential: string;
  asked: Asked;
  isAllowedOnce: boolean;
  end: () => void;
}

const MAX_PATH = 1_024;
const MAX_HOST = 260;
const MAX_METHOD = 32;
/** Of names that programs and hosts make up. */
const MAX_MADE_UP = 200;

/** A request or a tunnel: whether it passes, and what is reported of it, once. */
export class Exchange {
  status: number | null = null;
  sentBytes = 0;
  receivedBytes = 0;
  isAllowedOnce = false;
  private rule: string | null = null;
  private isReported = false;
  private readonly at = new Date();
  private readonly startedAt = performance.now();

  constructor(
    private readonly parts: ProxyParts,
    readonly policy: EgressPolicy,
    readonly asked: Asked,
    private readonly method: string,
  ) {}

  /**
   * Tells whether only credentials of its sandbox may go there.
   * @param isWithinAllowed it is inside of a tunnel that its owner allowed once
   * @throws RefusedError unless the rules let it pass, or its owner allowed it once
   */
  async admit(isWithinAllowed = false): Promise<{ isOwnOnly: boolean }> {
    const decision = decideEgress(this.policy, this.asked);
    if (decision.isAllowed) {
      this.rule = decision.rule;
      return decision;
    }
    const { target } = this.asked;
    const firm = decideOnce(this.policy, this.asked);
    const { denial, rule } = firm.isAllowed ? decision : firm;
    if (!firm.isAllowed || !(isWithinAllowed || (await this.useOnce(target)))) {
      throw denied(denial, target, { rule });
    }
    this.isAllowedOnce = true;
    return firm;
  }

  private async useOnce(target: Target): Promise<boolean> {
    const entry = allowedOnce(this.policy, target);
    try {
      return entry !== null && (await this.parts.service.once(this.policy.sandbox, entry));
    } catch (error) {
      throw new RefusedError(
        null,
        503,
        `Slipway's egress proxy cannot ask whether ${target.host} is allowed once: ${errorWithCauses(error)}`,
        null,
        { cause: error },
      );
    }
  }

  /** Queues what a call of a model took. */
  reportCall(
    { model, asked }: Pick<ReportedCall, 'model' | 'asked'>,
    { model: answeredBy, ...usage }: CallUsage,
  ): void {
    this.parts.reports.addCall(this.policy.sandbox, {
      at: this.at.toISOString(),
      host: this.asked.target.host.slice(0, MAX_HOST),
      model: model?.slice(0, MAX_MODEL_NAME) ?? null,
      asked: asked === null ? null : reportable(asked),
      answeredBy: answeredBy === null ? null : reportable(answeredBy),
      ...usage,
    });
  }

  /** Queues what is told to the service: without the query, where programs put credentials. */
  report(error: unknown = null): void {
    if (this.isReported) {
      return;
    }
    this.isReported = true;
    const { target, path } = this.asked;
    const refused = error instanceof RefusedError ? error : null;
    this.parts.reports.add(this.policy.sandbox, {
      at: this.at.toISOString(),
      host: target.host.slice(0, MAX_HOST),
      port: target.port,
      method: this.method.slice(0, MAX_METHOD),
      path: path?.split('?', 1)[0]?.slice(0, MAX_PATH) ?? null,
      denied: refused?.denial ?? null,
      rule: refused === null ? this.rule : refused.rule,
      phase: this.policy.phase,
      status: refused === null ? this.status : refused.denial === null ? refused.status : null,
      sentBytes: this.sentBytes,
      receivedBytes: this.receivedBytes,
      durationMs: Math.round(performance.now() - this.startedAt),
    });
  }
}

/** A report has room for it, and the service takes it: what that refuses would not be counted. */
function reportable(text: string): string {
  return cleanText(text.slice(0, MAX_MADE_UP)).replaceAll(/\p{Cc}/gu, '\u{fffd}');
}

/** What ends as soon as the rules refuse it. */
export function lastingOf(client: Client, { asked, isAllowedOnce }: Exchange, end: () => void): Lasting {
  return { credential: client.caller?.credential ?? '', asked, isAllowedOnce, end };
}
