import { type Findings, type LoadCounts } from '../rolling/load.js';

/** How much is done. */
export interface Amount {
  /** Times that the service is killed under load. */
  kills: number;
  /** After this time the service is killed no more. */
  killSeconds: number;
  /** Times that PostgreSQL is killed: the embedded one, and one that the service does not supervise. */
  postgresKills: number;
  /** Times of everything else that is done more than once. */
  rounds: number;
  /** How long an answer may take while the database is away. */
  answerMs: number;
}

/** What a scenario came to. */
export interface Outcome extends LoadCounts {
  /** How often damage was done. */
  faults: number;
  /** Processes and folders of sandboxes that the service has lost track of. */
  orphaned: number;
  /** Sentences; none when everything was as it should be. */
  problems: string[];
  /** What else is worth to be read. */
  notes: string[];
}

/** One kind of fault, the only export of `scenarios/<name>.scenario.ts`. */
export interface Scenario {
  /** The name of its file, without `.scenario.ts`. */
  name: string;
  /** What is done to what: one sentence. */
  what: string;
  /** Whether `--short` runs it. */
  isShort: boolean;
  /**
   * @throws NotTried when this machine does not have what it takes
   * @throws Error when the service does not come back, or the scenario itself does not work
   */
  run(amount: Amount): Promise<Outcome>;
}

/** This machine does not have what the scenario needs. */
export class NotTried extends Error {}

/** An outcome with what a load has found. */
export function outcomeOf(faults: number, { counts, problems, lines }: Findings, orphaned: number): Outcome {
  const found = orphaned === 0 ? [] : [`${orphaned} processes or folders of sandboxes are left over`];
  return { ...counts, faults, orphaned, problems: [...problems, ...found], notes: lines };
}

/** An outcome without any load: what was asserted is in the problems. */
export function outcomeWithout(
  faults: number,
  seen: Partial<LoadCounts>,
  problems: string[],
  notes: string[] = [],
): Outcome {
  const none = { acknowledged: 0, lost: 0, doubled: 0, stuck: 0 };
  return { ...none, ...seen, faults, orphaned: 0, problems, notes };
}
