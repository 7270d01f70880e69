export class HttpError extends Error {
  override readonly name = 'HttpError';

  /** @param detail shown as it is: never a secret */
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

/** @throws HttpError 404 with the detail where there is nothing */
export function existing<T>(value: T | null | undefined, detail: string): T {
  if (value === null || value === undefined) {
    throw new HttpError(404, detail);
  }
  return value;
}

/** One broken rule: where, what would be right, and the kind of failure. Never the rejected value. */
export interface RequestProblem {
  type: string;
  loc: (string | number)[];
  msg: string;
}

export class InvalidRequestError extends Error {
  readonly problems: RequestProblem[];

  constructor(...problems: RequestProblem[]) {
    super('The request breaks one or more rules.');
    this.name = 'InvalidRequestError';
    this.problems = problems;
  }
}

/** The error for a `page_id` that is not the `next_page_id` of a page of the list. */
export function unknownPage(): InvalidRequestError {
  return new InvalidRequestError({
    type: 'value_error',
    loc: ['query', 'page_id'],
    msg: 'Input should be the next_page_id of a page of this list, or none for the first page',
  });
}
