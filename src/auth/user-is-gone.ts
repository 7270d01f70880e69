import { QueryFailedError } from 'typeorm';

/** Without its user a row breaks the foreign key, or has no id to refer to at all. */
const STATES: readonly unknown[] = ['23503', '23502'];

/** Whether writing a row of a user failed because the user has been removed since the request was let in. */
export function userIsGone(error: unknown): boolean {
  return (
    error instanceof QueryFailedError &&
    'code' in error.driverError &&
    STATES.includes(error.driverError.code)
  );
}
