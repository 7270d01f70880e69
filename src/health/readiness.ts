import { ApiProperty } from '@nestjs/swagger';
import { Injectable, Logger } from '@nestjs/common';
import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Shown, ShownOrNull } from '@slipway/api/openapi/responses.js';
import { DomainError } from '../common/errors/domain-error.js';

/** `starting`: not ready yet; `unknown`: cannot be checked while another part is down. */
export const PART_STATUSES = ['ok', 'starting', 'failed', 'unknown'] as const;

export type PartState =
  | { status: 'ok' }
  | {
      status: 'starting' | 'failed' | 'unknown';
      /** Public: contains no address, machine name or secret. */
      advice: string;
      /** Only administrators see its message. */
      cause?: unknown;
    };

export interface ReadinessPart {
  name: string;
  /** This replica is not ready without it, as another replica may do better. */
  required: boolean;
  check: () => Promise<PartState>;
  adviceWhenLate?: string;
}

/** The cause is shown to administrators only. */
export type PartReport = Required<ReadinessPartDto>;

const CHECK_MS = 5_000;
const LATE = `It did not answer within ${CHECK_MS / 1000} s: look for what keeps it busy.`;
/** Probes are public, so they must not cause a check each. */
const KEEP_MS = 2_000;

@Injectable()
export class Readiness {
  private readonly logger = new Logger('Health');
  private readonly parts: ReadinessPart[] = [];
  /** The last reports of optional parts, by name. */
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

/** A check that throws or takes too long counts as failed. */
async function inTime({ check, adviceWhenLate = LATE }: ReadinessPart): Promise<PartState> {
  try {
    return (await within(CHECK_MS, check())) ?? { status: 'failed', advice: adviceWhenLate };
  } catch (cause) {
    return { status: 'failed', advice: 'It could not be checked; the log of this replica says why.', cause };
  }
}

/** @throws DomainError unavailable if a part is not ready without which requests fail */
export function requireReady(reports: readonly PartReport[], extensions: Record<string, unknown> = {}): void {
  const failed = reports.find(({ required, status }) => required && status !== 'ok');
  if (failed) {
    const advice = failed.advice ?? 'This replica is not ready; try again.';
    throw new DomainError('unavailable', advice, { retryAfterSeconds: 1, extensions });
  }
}

/** A draining replica still answers, but is not ready, so that balancers stop sending before the listener closes. */
@Injectable()
export class Draining {
  private readonly listeners: (() => void)[] = [];
  private begun = false;

  get hasBegun(): boolean {
    return this.begun;
  }

  /** Calls the listener once, when draining begins. */
  onBegin(listener: () => void): void {
    this.listeners.push(listener);
  }

  begin(): void {
    if (!this.begun) {
      this.begun = true;
      this.listeners.forEach((listener) => listener());
    }
  }
}

export class ReadinessPartDto {
  @ApiProperty({ description: 'Which part of the service.', example: 'sandbox_backend' }) name: string;

  @Shown('`unknown`: it cannot be checked while another part is away.', 'failed', { enum: PART_STATUSES })
  status: (typeof PART_STATUSES)[number];

  @Shown('Whether requests fail without it: only then the status is 503.', false) required: boolean;

  @ShownOrNull(
    'What is wrong and what to do; null while it is ok.',
    'Sandboxes cannot run: conversations cannot be started or resumed. Look at the log of the service.',
  )
  advice: string | null;

  @ShownOrNull(
    'What was caught. Only with the key of an administrator.',
    'no Docker engine answers (ECONNREFUSED); is it running, and is DOCKER_HOST right?',
    { required: false },
  )
  cause?: string | null;
}

export class ReadinessDto {
  @Shown('`degraded`: requests succeed, but a part that is not required is not ok.', 'degraded', {
    enum: ['ok', 'degraded'],
  })
  status: 'ok' | 'degraded';

  @ApiProperty({ type: [ReadinessPartDto], description: 'Every part, the required ones first.' })
  parts: ReadinessPartDto[];
}

/** Causes name addresses, so only administrators see them. */
export function toPartDtos(reports: readonly PartReport[], showsCauses: boolean): ReadinessPartDto[] {
  return reports.map(({ name, status, required, advice, cause }) => ({
    name,
    status,
    required,
    advice,
    ...(showsCauses && { cause }),
  }));
}
