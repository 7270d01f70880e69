import { jsonAt } from '@slipway/common/json-access.js';

/** A check of Schemathesis, by the failure that it reports. */
export type Check =
  | 'ServerError'
  | 'UndefinedStatusCode'
  | 'UndefinedContentType'
  | 'MissingContentType'
  | 'JsonSchemaError'
  | 'AcceptedNegativeData'
  | 'RejectedPositiveData'
  | 'UnsupportedMethodResponse'
  | 'MissingHeaderNotRejected'
  | 'UseAfterFree'
  | 'EnsureResourceAvailability'
  | 'IgnoredAuth';

/** What looks like a failure and is wanted. */
export interface WantedFailure {
  checks: Check[];
  /** Operations, such as `GET /alive`: a regular expression for the whole of it. */
  operations: string;
  /** Statuses of the answer; none: any. */
  statuses?: number[];
  /** What the answer has in it: a regular expression. */
  answer?: string;
  /** What the report of the failure has in it: a regular expression. */
  message?: string;
  /** Only where the member of the wrong type is 0, 1, "true" or "false". */
  flags?: boolean;
  /** Why it is wanted: one sentence. */
  because: string;
}

/** Something that answers as a document says. */
export interface FuzzTarget {
  name: string;
  /** Path or address of its OpenAPI document. */
  document: string;
  /** How many operations it has. */
  operations: number;
  /** Where it listens. */
  url: string;
  /** Key for the header `X-Session-API-Key`. */
  key: string;
  /** Checks of Schemathesis that are made, by their names on its command line. */
  checks: string[];
  /** Statuses with which data that fits the document may be refused, since something is not there or not possible now. */
  refusals: number[];
  wanted: WantedFailure[];
  /** Ids, in hexadecimal, that no case may name in its path. */
  kept: string[];
  /** Members of bodies that a case has with these values, by operation. */
  bodies: Record<string, Record<string, unknown>>;
}

/** How many operations an OpenAPI document has. */
export function countOperations(document: unknown): number {
  const paths = Object.values(Object(jsonAt(document, 'paths')));
  return paths.flatMap((methods) => Object.keys(Object(methods))).length;
}
