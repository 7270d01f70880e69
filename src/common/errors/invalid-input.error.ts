/** One failed rule: where it is, what would be right, and the machine type of the failure. */
export interface InputProblem {
  /** Path to the value, strings only; the first element is `body`, `query`, `path` or `header`. */
  loc: string[];
  /** One sentence that says what would be right. Never contains the rejected value. */
  msg: string;
  /** Machine type, for example `missing`, `int_parsing`, `value_error`. */
  type: string;
}

/** Input that breaks one or more rules; answered as 422 `{detail:[{loc,msg,type}]}`. */
export class InvalidInputError extends Error {
  constructor(readonly problems: readonly InputProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidInputError';
  }
}
