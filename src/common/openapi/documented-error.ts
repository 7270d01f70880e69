import type { ErrorCode } from '../errors/error-code.js';
import type { InputProblem } from '../errors/invalid-input.error.js';

/** An error answer of one operation. What is left out comes from what its status usually means. */
export interface DocumentedProblem {
  status: number;
  code?: ErrorCode;
  detail?: string;
  /** Of the status in this operation, where several problems share it: of the first that has one. */
  description?: string;
  /** Further members of the problem document. */
  extensions?: Record<string, unknown>;
}

/** The 422 of one operation, with a failure that can happen there. */
export interface DocumentedInvalidInput {
  status: 422;
  problem: InputProblem;
}

/** A status alone, or with the texts of this operation. */
export type DocumentedError = number | DocumentedProblem | DocumentedInvalidInput;

/** The 422 of an operation: a rule of it that an input breaks, in the words of the answer. */
export function invalidInput(loc: string[], type: string, msg: string): DocumentedInvalidInput {
  return { status: 422, problem: { loc, msg, type } };
}
