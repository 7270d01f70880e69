import { describe, expect, it } from '@jest/globals';
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { databaseFailure, isDatabaseAway } from './database-failure.js';

function errorWith(members: Record<string, unknown>, message = 'broken'): Error {
  return Object.assign(new Error(message), members);
}

const refused = errorWith({ code: 'ECONNREFUSED', syscall: 'connect' });
const shutdown = errorWith({ code: '57P01', severity: 'FATAL' });

describe('isDatabaseAway', () => {
  it.each([
    ['a refused connection', refused],
    ['a refused connection to each of several addresses', new AggregateError([refused, refused])],
    ['a missing socket file', errorWith({ code: 'ENOENT', syscall: 'connect' })],
    ['a machine without a file descriptor for it', errorWith({ code: 'EMFILE', syscall: 'connect' })],
    ['an unknown host name', errorWith({ code: 'EAI_AGAIN', syscall: 'getaddrinfo' })],
    ['a reset connection under a statement', new QueryFailedError('SELECT 1', [], refused)],
    ['a shutdown', shutdown],
    ['a shutdown under a statement', new QueryFailedError('SELECT 1', [], shutdown)],
    ['a start that is not over', errorWith({ code: '57P03', severity: 'FATAL' })],
    ['too many connections', errorWith({ code: '53300', severity: 'FATAL' })],
    ['a full disk', errorWith({ code: '53100', severity: 'ERROR' })],
    ['a statement that took too long', errorWith({ code: '57014', severity: 'ERROR' })],
    ['a server that does not answer', new Error('Query read timeout')],
    ['a connection lost between statements', new Error('Connection terminated unexpectedly')],
    ['a connection lost between statements of a transaction', new QueryRunnerAlreadyReleasedError()],
    ['a pool without a free connection', new Error('timeout exceeded when trying to connect')],
  ])('is true for %s', (_name, error) => {
    expect(isDatabaseAway(error)).toBe(true);
  });

  it.each([
    ['a broken unique constraint', errorWith({ code: '23505', severity: 'ERROR' })],
    ['a wrong statement', new QueryFailedError('SELEC', [], errorWith({ code: '42601', severity: 'ERROR' }))],
    ['a missing file', errorWith({ code: 'ENOENT', syscall: 'open' })],
    ['an error of ours', new Error('anything')],
    ['an SQLSTATE that PostgreSQL did not send', errorWith({ code: '57P01' })],
    ['no error', null],
    ['text', 'ECONNREFUSED'],
  ])('is false for %s', (_name, error) => {
    expect(isDatabaseAway(error)).toBe(false);
  });
});

describe('databaseFailure', () => {
  it.each([
    ['disk_full', errorWith({ code: '53100', severity: 'ERROR' })],
    ['disk_full', new QueryFailedError('INSERT', [], errorWith({ code: '53100', severity: 'PANIC' }))],
    ['overloaded', errorWith({ code: '53200', severity: 'ERROR' })],
    ['overloaded', errorWith({ code: '53300', severity: 'FATAL' })],
    ['overloaded', errorWith({ code: '53400', severity: 'ERROR' })],
    ['overloaded', errorWith({ code: '55P03', severity: 'ERROR' })],
    ['overloaded', errorWith({ code: '40P01', severity: 'ERROR' })],
    ['unreachable', shutdown],
    ['unreachable', new AggregateError([errorWith({ code: '23505' }), refused])],
    [null, errorWith({ code: '53100' })],
  ])('is %s', (failure, error) => {
    expect(databaseFailure(error)).toBe(failure);
  });
});
