/**
 * Where a package says what happens to it: Nest's `Logger` is one. A message is a sentence that does not change; what differs
 * is in the fields, which hold no secret.
 */
export interface Log {
  /** What went as it should, and an operator may look for. */
  log(message: string, fields?: object): void;
  /** What failed, and is done again or can be done without. */
  warn(message: string, fields?: object): void;
  /** What failed, and stays undone. @param details fields, or a stack */
  error(message: string, details?: object | string, stack?: string): void;
}

const nothing = (): void => undefined;

/** For programs whose output is their answer, and for tests. */
export const SILENT_LOG: Log = {
  log: nothing,
  warn: nothing,
  error: nothing,
};
