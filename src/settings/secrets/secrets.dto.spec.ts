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

  it.each([
    ['"hosts":"a.example"', ['hosts list_type']],
    ['"hosts":[5,"*.com"]', ['hosts.0 string_type', 'hosts.1 value_error']],
    ['"hosts":["a.example","*.com"]', ['hosts.1 value_error']],
    [`"hosts":[${'"a.example",'.repeat(20)}"a.example"]`, ['hosts too_long']],
    ['"inject":"Bearer"', ['inject model_attributes_type']],
    [
      '"inject":{"header":"X Key","format":"Bearer"}',
      ['inject.header value_error', 'inject.format value_error'],
    ],
    ['"inject":{"format":"{} {}"}', ['inject.format value_error']],
    ['"inject":{"format":"{}\\r\\nX: y"}', ['inject.format value_error']],
    ['"inject":{"query":"key"}', ['inject.query extra_forbidden']],
    ['"methods":["get"]', ['methods.0 value_error']],
    ['"paths":["v1"]', ['paths.0 value_error']],
    ['"paths":["/v1?x","/v1/*/x"]', ['paths.0 value_error', 'paths.1 value_error']],
    ['"placeholder":"fifteen-letters"', ['placeholder value_error']],
    ['"placeholder":"sixteen letters "', ['placeholder value_error']],
  ])('may not have %s', async (members, expected) => {
    expect(await bodyProblems(CreateSecretDto, `{"name":"A","value":"x",${members}}`)).toEqual(expected);
    expect(await bodyProblems(UpdateSecretDto, `{"name":"A",${members}}`)).toEqual(expected);
  });

  it('may say where the value goes, or with null what holds without', async () => {
    const given = {
      name: 'A',
      value: 'x',
      hosts: ['API.example.com', 'http://api.example.com:8080'],
      inject: { header: 'X-Key', format: 'token {}' },
      methods: ['GET'],
      paths: ['/v1/*'],
      placeholder: 'sixteen-letters-',
    };
    expect(await parseBody(CreateSecretDto, JSON.stringify(given))).toEqual(given);
    const none = { name: 'A', hosts: null, inject: null, methods: null, paths: null, placeholder: null };
    expect(await parseBody(UpdateSecretDto, JSON.stringify(none))).toEqual(none);
  });
});
