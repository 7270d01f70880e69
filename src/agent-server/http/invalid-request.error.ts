/** One failed rule: where, what would be right, and the kind of failure. Never the rejected value. */
export interface RequestProblem {
  type: string;
  loc: (string | number)[];
  msg: string;
}

/** A request that breaks rules; answered as 422. */
export class InvalidRequestError extends Error {
  readonly problems: RequestProblem[];

  constructor(problems: RequestProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidRequestError';
    this.problems = problems;
  }
}
