import { describe, expect, it } from '@jest/globals';
import { bodyProblems } from '../../test/support/body-problems.js';
import { CreateApiKeyDto } from './api-keys.dto.js';

describe('CreateApiKeyDto', () => {
  it.each([
    [{}, ['name missing']],
    [{ name: ' ' }, ['name value_error']],
    [{ name: 'x'.repeat(101) }, ['name value_error']],
    [{ name: 'bootstrap' }, ['name value_error']],
    [
      { name: 5, expires_at: 'tomorrow', user_id: 'x' },
      ['name string_type', 'expires_at datetime_parsing', 'user_id uuid_parsing'],
    ],
    [{ name: 'a', user_id: 5 }, ['user_id uuid_type']],
    [{ name: 'a', colour: 'red', constructor: 1 }, ['colour extra_forbidden', 'constructor extra_forbidden']],
    [{ name: 'a', not_before: 'soon' }, ['not_before datetime_parsing']],
    [{ name: 'a', scopes: ['read', 'everything'] }, ['scopes.1 enum']],
    [{ name: 'a', scopes: 'read' }, ['scopes list_type']],
    [{ name: 'a', expires_at: '2030-02-31' }, ['expires_at datetime_parsing']],
    [{ name: 'a', expires_at: '2030-02-29T00:00:00Z' }, ['expires_at datetime_parsing']],
    [{ name: 'a', expires_at: '2030-13-01T00:00:00Z' }, ['expires_at datetime_parsing']],
    [{ name: 'a', expires_at: '9999-12-31T23:59:59-01:00' }, ['expires_at datetime_parsing']],
  ])('refuses %j', async (body, expected) => {
    expect(await bodyProblems(CreateApiKeyDto, JSON.stringify(body))).toEqual(expected);
  });
});
