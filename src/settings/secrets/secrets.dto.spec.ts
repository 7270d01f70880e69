import { describe, expect, it } from '@jest/globals';
import { bodyProblems, parseBody } from '../../../test/support/body-problems.js';
import { CreateSecretDto, UpdateSecretDto } from './secrets.dto.js';

describe('bodies of custom secrets', () => {
  it.each([
    ['{}', ['name missing', 'value missing']],
    ['{"name":"a"}', ['value missing']],
    ['{"name":"","value":"x"}', ['name value_error']],
    ['{"name":"A-B","value":"x"}', ['name value_error']],
    ['{"name":"1A","value":"x"}', ['name value_error']],
    ['{"name":"A\\n","value":"x"}', ['name value_error']],
    ['{"name":"A","value":null}', ['value string_type']],
    [
      '{"name":5,"value":5,"description":5}',
      ['name string_type', 'value string_type', 'description string_type'],
    ],
  ])('a new one may not be %s', async (body, expected) => {
    expect(await bodyProblems(CreateSecretDto, body)).toEqual(expected);
  });

  it.each([
    ['{}', ['name missing']],
    ['{"name":"1","value":5}', ['name value_error', 'value string_type']],
  ])('a changed one may not be %s', async (body, expected) => {
    expect(await bodyProblems(UpdateSecretDto, body)).toEqual(expected);
  });

  it('may be empty', async () => {
    expect(await parseBody(CreateSecretDto, '{"name":"a","value":""}')).toEqual({ name: 'a', value: '' });
  });
});
