import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';

/** `starting`: not ready yet, without anything being wrong; `unknown`: nobody can tell while another part is away. */
export const PART_STATUSES = ['ok', 'starting', 'failed', 'unknown'] as const;

/** The state of a part. */
export type PartState =
  | { status: 'ok' }
  | {
      status: 'starting' | 'failed' | 'unknown';
      /** What it means and what to do, for everybody: no address, no name of a machine, no secret. */
      advice: string;
      /** The error; only administrators see its message. */
      cause?: unknown;
    };

/** Something that the service depends on. */
export interface ReadinessPart {
  name: string;
  /** Without it requests fail, and another replica may do better: this one is not ready. */
  required: boolean;
  check: () => Promise<PartState>;
  /** What it means, and what to do, when the check takes too long. */
  adviceWhenLate?: string;
}

/** The result of checking a part. */
export interface PartReport {
  name: string;
  required: boolean;
  status: (typeof PART_STATUSES)[number];
  advice: string | null;
  /** The error message, for administrators. */
  cause: string | null;
}

const CHECK_MS = 5_000;
const LATE = `It did not answer within ${CHECK_MS / 1000} s: look for what keeps it busy.`;
/** How long a result is reused: probes are open to everybody, so they must not cause a check each. */
const KEEP_MS = 2_000;

/** Knows the parts that the service consists of; features add theirs before the application starts. */
@Injectable()
export class Readiness {
  private readonly logger = new Logger('Health');
  private readonly parts: ReadinessPart[] = [];
  /** By name: the last report of each part that is not required. */
  private readonly kept = new Map<string, { report: Promise<PartReport>; until: number }>();
  private readonly lastStatus = new Map<string, PartReport['status']>();

  addPart(part: ReadinessPart): void {
    this.parts.push(part);
  }

  /** Checks all parts, required ones first. */
  async report(): Promise<PartReport[]> {
    const ordered = [...this.required(), ...this.parts.filter(({ required }) => !required)];
    return Promise.all(ordered.map((part) => this.look(part)));
  }

  /** Checks only the parts that decide whether this replica is ready. */
  async reportRequired(): Promise<PartReport[]> {
    return Promise.all(this.required().map((part) => this.look(part)));
  }

  private required(): ReadinessPart[] {
    return this.parts.filter(({ required }) => required);
  }

  private look(part: ReadinessPart): Promise<PartReport> {
    if (part.required) {
      return this.check(part);
    }
    const kept = this.kept.get(part.name);
    if (kept !== undefined && performance.now() < kept.until) {
      return kept.report;
    }
    const report = this.check(part);
    this.kept.set(part.name, { report, until: performance.now() + KEEP_MS });
    return report;
  }

  private async check(part: ReadinessPart): Promise<PartReport> {
    const { name, required } = part;
    const state = await inTime(part);
    const { status } = state;
    const advice = 'advice' in state ? state.advice : null;
    const cause = 'cause' in state && state.cause !== undefined ? errorMessage(state.cause) : null;
    if (this.lastStatus.get(name) !== status) {
      if (status === 'failed') {
        this.logger.warn('part is not ready', { part: name, advice, cause });
      } else if (this.lastStatus.get(name) === 'failed' && status === 'ok') {
        this.logger.log('part is ready again', { part: name });
      }
      this.lastStatus.set(name, status);
    }
    return { name, required, status, advice, cause };
  }
}

/** A check that throws, or takes too long, is a part that has failed. */
async function inTime({ check, adviceWhenLate = LATE }: ReadinessPart): Promise<PartState> {
  const late = Promise.withResolvers<PartState>();
  const timer = setTimeout(() => late.resolve({ status: 'failed', advice: adviceWhenLate }), CHECK_MS);
  try {
    return await Promise.race([check(), late.promise]);
  } catch (cause) {
    return { status: 'failed', advice: 'It could not be checked; the log of this replica says why.', cause };
  } finally {
    clearTimeout(timer);
  }
}
