import { isDeepStrictEqual } from 'node:util';
import type { SandboxFacts } from './backends/sandbox-backend.js';
import type { SandboxRowStatus } from './sandbox-status.js';

/** What a row says. */
export interface KnownSandbox {
  id: string;
  status: SandboxRowStatus;
  address: string | null;
  ports: SandboxFacts['ports'];
  /** Of this host and of the backend that the service runs with. */
  ours: boolean;
}

/** What is to be done about a difference between a row and the backend. */
export type Difference =
  /** It should run, and does not: look again, then say so. */
  | { kind: 'ended'; id: string }
  /** It runs somewhere else than the row says. */
  | { kind: 'moved'; id: string }
  /** It runs, and should not. */
  | { kind: 'left-over'; id: string }
  /** It has run once, rests, and is not there any more: look again, then say so. */
  | { kind: 'gone'; id: string }
  /** It is there although it was said to be gone. */
  | { kind: 'back'; id: string }
  /** Nobody knows it any more. */
  | { kind: 'orphan'; id: string };

export interface ReconcileOptions {
  /** Epoch milliseconds. */
  now: number;
  /** Age from which what has no row is an orphan, milliseconds. */
  graceMs: number;
  /** When something without a row was first seen, for backends that do not know its age. */
  firstSeen: ReadonlyMap<string, number>;
}

/**
 * Compares rows with what the backend has. Transitional rows are left to their workers.
 *
 * @param known the RUNNING rows of this host, those that rest and should be there, and the rows of everything that the
 *   backend has
 * @param facts what the backend had before the rows were read: what got its row later is no orphan then
 */
export function reconcile(
  known: readonly KnownSandbox[],
  facts: readonly SandboxFacts[],
  { now, graceMs, firstSeen }: ReconcileOptions,
): Difference[] {
  const rows = new Map(known.map((row) => [row.id, row]));
  const had = new Map(facts.map((fact) => [fact.id, fact]));
  return [
    ...known.flatMap((row) => knownDifference(row, had.get(row.id))),
    ...facts.flatMap((fact): Difference[] => {
      const row = rows.get(fact.id);
      if (row) {
        return row.ours && rests(row) && fact.state === 'running' ? [{ kind: 'left-over', id: fact.id }] : [];
      }
      const since = fact.createdAt ?? firstSeen.get(fact.id) ?? now;
      return now - since >= graceMs ? [{ kind: 'orphan', id: fact.id }] : [];
    }),
  ];
}

function rests({ status }: KnownSandbox): boolean {
  return status === 'PAUSED' || status === 'ERROR';
}

function knownDifference(row: KnownSandbox, fact: SandboxFacts | undefined): Difference[] {
  if (row.ours && rests(row) && fact === undefined) {
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
