import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { markdownTable, oneLine } from '../../support/program-runs.js';

/** A row of the table. */
export interface StepResult {
  client: string;
  step: string;
  seen: string;
  verdict: 'passed' | 'FAILED' | 'not run';
}

const STEP_TIMEOUT_MS = 180_000;
const SEEN_LENGTH = 300;
const HEAD = ['client', 'step', 'seen', 'verdict'];

/** Runs the steps of one client, one after the other, and keeps what was seen. */
export class Steps {
  readonly results: StepResult[] = [];

  constructor(
    private readonly client: string,
    private readonly print: (line: string) => void,
  ) {}

  /**
   * @param act answers what was seen; throws where the client does not work
   * @returns whether it worked
   */
  async step(step: string, act: () => Promise<string>, timeoutMs = STEP_TIMEOUT_MS): Promise<boolean> {
    const before = performance.now();
    try {
      const seen = await within(timeoutMs, act());
      if (seen === null) {
        throw new Error(`it has not ended after ${timeoutMs / 1000} s`);
      }
      this.add({ step, seen, verdict: 'passed' }, performance.now() - before);
      return true;
    } catch (error) {
      this.add({ step, seen: errorMessage(error), verdict: 'FAILED' }, performance.now() - before);
      return false;
    }
  }

  /** A step that another program has run. */
  add(result: Omit<StepResult, 'client'>, tookMs = 0): void {
    const seen = oneLine(result.seen, SEEN_LENGTH);
    this.results.push({ client: this.client, ...result, seen });
    const seconds = (tookMs / 1000).toFixed(1);
    this.print(`${result.verdict.padEnd(7)} ${this.client}: ${result.step} (${seconds} s): ${seen}`);
  }
}

export function table(results: readonly StepResult[]): string {
  const rows = results.map(({ client, step, seen, verdict }) => [client, step, seen, verdict]);
  return markdownTable(HEAD, rows);
}
