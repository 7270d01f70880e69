import type { PassingFailure } from '@slipway/api/errors/problem.filter.js';
import { type DatabaseFailure, databaseFailure } from '@slipway/database/database-failure.js';
import type { ErrorCode } from './domain-error.js';

export const DATABASE_PROBLEMS: Readonly<Record<DatabaseFailure, PassingFailure & { code: ErrorCode }>> = {
  unreachable: {
    code: 'unavailable',
    detail: 'The database cannot be reached at the moment; try again.',
    log: 'failed to reach database',
    retryAfterSeconds: 1,
  },
  overloaded: {
    code: 'unavailable',
    detail: 'The database is overloaded at the moment; try again.',
    log: 'failed to use database, which is overloaded',
    retryAfterSeconds: 2,
  },
  disk_full: {
    code: 'storage_full',
    detail:
      'The disk of the database is full: what is stored can be read, and nothing can be added. Whoever runs this service has to free space.',
    log: 'failed to write to database, whose disk is full',
    retryAfterSeconds: 30,
  },
};

/** What a failure of the database is to clients and operators; null for another error. */
export function databaseProblem(error: unknown): PassingFailure | null {
  const failure = databaseFailure(error);
  return failure && DATABASE_PROBLEMS[failure];
}
