import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { SandboxBackend, type SandboxFacts } from '@slipway/sandboxes/sandbox-backend.js';
import { HostIdentity } from '../host-identity.js';
import {
  type ExpectedSandbox,
  FIRST_ROW,
  SandboxLifecycleRepository,
} from '../sandbox-lifecycle.repository.js';

/** A difference between a row and the backend, named after what is found. */
export interface Drift {
  kind: 'ended' | 'moved' | 'left-over' | 'gone' | 'back' | 'orphan';
  id: string;
}

const STOPPED_PER_ROUND = 1_000;

/** Compares all sandboxes that run each time, and a part of the stopped ones, of which there may be thousands. */
@Injectable()
export class DriftDetector {
  private firstSeen: ReadonlyMap<string, number> = new Map();
  private stoppedUntil = '';
  private rowsUntil = FIRST_ROW;
  /** Whether nothing ran, and nothing was to run, when they were last compared. */
  isQuiet = false;

  constructor(
    private readonly lifecycle: SandboxLifecycleRepository,
    private readonly backend: SandboxBackend,
    private readonly host: HostIdentity,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  async detect(): Promise<Drift[]> {
    // The backend first: what is started between the two calls has its row already.
    const facts = await this.backend.list();
    const { compared, stoppedUntil } = nextPart(facts, this.stoppedUntil);
    this.stoppedUntil = stoppedUntil;
    const { rows, until } = await this.lifecycle.expected(
      this.host.id,
      this.backend.kind,
      [...compared],
      this.rowsUntil,
    );
    this.rowsUntil = until;
    this.isQuiet =
      !facts.some(({ state }) => state === 'running') && !rows.some(({ status }) => status === 'RUNNING');
    const now = this.clock.now();
    this.firstSeen = new Map(facts.map(({ id }) => [id, this.firstSeen.get(id) ?? now]));
    return findDrift(rows, facts, {
      now,
      graceMs: this.config.sandboxes.orphanGraceSeconds * 1000,
      firstSeen: this.firstSeen,
      compared,
    });
  }
}

/** Chooses the sandboxes whose rows this round compares; the stopped ones are those after `stoppedUntil`. */
export function nextPart(
  facts: readonly SandboxFacts[],
  stoppedUntil: string,
): { compared: Set<string>; stoppedUntil: string } {
  const idsOf = (isWanted: (fact: SandboxFacts) => boolean): string[] =>
    facts.filter(isWanted).map(({ id }) => id);
  const running = idsOf(({ state }) => state === 'running');
  const later = idsOf(({ state, id }) => state !== 'running' && id > stoppedUntil).toSorted();
  const next = later.slice(0, STOPPED_PER_ROUND);
  return {
    compared: new Set([...running, ...next]),
    stoppedUntil: later.length > STOPPED_PER_ROUND ? (next.at(-1) ?? '') : '',
  };
}

interface DriftOptions {
  now: number;
  /** Milliseconds; what has no row is an orphan from this age on. */
  graceMs: number;
  firstSeen: ReadonlyMap<string, number>;
  /** The ids whose rows were looked for. */
  compared: ReadonlySet<string>;
}

/** Leaves transitional rows to workers. `facts` precede the `expected` rows, so that a new row is no orphan. */
export function findDrift(
  expected: readonly ExpectedSandbox[],
  facts: readonly SandboxFacts[],
  { now, graceMs, firstSeen, compared }: DriftOptions,
): Drift[] {
  const rows = new Map(expected.map((row) => [row.id, row]));
  const factsById = new Map(facts.map((fact) => [fact.id, fact]));
  return [
    ...expected.flatMap((row) => driftOfRow(row, factsById.get(row.id))),
    ...facts.flatMap((fact): Drift[] => {
      const row = rows.get(fact.id);
      if (row) {
        return row.ours && isStopped(row) && isLeft(fact) ? [{ kind: 'left-over', id: fact.id }] : [];
      }
      if (!compared.has(fact.id)) {
        return [];
      }
      const since = fact.createdAt ?? firstSeen.get(fact.id) ?? now;
      return now - since >= graceMs ? [{ kind: 'orphan', id: fact.id }] : [];
    }),
  ];
}

function driftOfRow(row: ExpectedSandbox, fact: SandboxFacts | undefined): Drift[] {
  if (row.ours && row.everStarted && isStopped(row) && fact === undefined) {
    return [{ kind: 'gone', id: row.id }];
  }
  if (row.ours && row.status === 'MISSING' && fact !== undefined) {
    return [{ kind: 'back', id: row.id }];
  }
  if (row.status !== 'RUNNING') {
    return [];
  }
  if (!row.ours || fact?.state !== 'running') {
    return [{ kind: 'ended', id: row.id }];
  }
  return fact.address !== null && !isDeepStrictEqual([fact.address, fact.ports], [row.address, row.ports])
    ? [{ kind: 'moved', id: row.id }]
    : [];
}

/** Whether something of a sandbox that should not run takes room. */
export function isLeft({ state, isReplaced }: SandboxFacts): boolean {
  return state === 'running' || isReplaced === true;
}

function isStopped({ status }: ExpectedSandbox): boolean {
  return status === 'PAUSED' || status === 'ERROR';
}
