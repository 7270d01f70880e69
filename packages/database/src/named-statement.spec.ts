import { describe, expect, it } from '@jest/globals';
import { statementName } from './named-statement.js';

describe('names of statements', () => {
  it.each([
    ['SELECT "User"."id" AS "User_id" FROM "users" "User" WHERE (("User"."email" = $1))', 'SELECT users'],
    ['UPDATE "sandboxes" SET "address" = $1 WHERE "id" = $2', 'UPDATE sandboxes'],
    ['\n  insert into custom_secrets (name) VALUES ($1)', 'INSERT custom_secrets'],
    ['DELETE FROM "provider_tokens" WHERE token = $1', 'DELETE provider_tokens'],
    ["SELECT pg_notify('jobs', 'a-secret')", 'SELECT'],
    ['START TRANSACTION', 'START'],
    ["WITH x AS (SELECT 'a-secret' FROM settings) UPDATE users SET a = 1", 'WITH settings'],
    ["SET LOCAL statement_timeout = '15s'", 'SET'],
    ['', 'statement'],
  ])('%s is %s', (query, name) => {
    expect(statementName(query)).toBe(name);
  });
});
