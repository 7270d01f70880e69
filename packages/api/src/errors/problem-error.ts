export interface InputProblem {
  /** The first element is `body`, `query`, `path` or `header`. */
  loc: string[];
  /** Says what would be right, and never contains the rejected value. */
  msg: string;
  type: string;
}

export class InvalidInputError extends Error {
  readonly problems: readonly InputProblem[];

  constructor(problems: InputProblem | readonly InputProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidInputError';
    this.problems = [problems].flat();
  }

  /** All problems in one line, for readers who get no document. */
  get sentence(): string {
    return this.problems.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join(' ');
  }
}

/** @throws InvalidInputError when there are problems */
export function requireNone(problems: readonly InputProblem[]): void {
  if (problems.length > 0) {
    throw new InvalidInputError(problems);
  }
}
