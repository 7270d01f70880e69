import { describe, expect, it } from '@jest/globals';
import { InvalidInputError } from '../errors/problem-error.js';
import { runInRequestContext } from '../requests/request-context.js';
import { type DtoClass, toDto } from './field.js';
import { FreeObject, NestedList, Text } from './field-decorators.js';
import { NoOtherMembers, TellsOtherMembers, judgeUnknownMembers } from './unknown-members.js';

class OpenDto {
  @Text('The repository.', {}) selected_repository?: string;
  @Text('The branch.', { nullable: true }) selected_branch?: string | null;
}
@NoOtherMembers()
class ClosedDto extends OpenDto {
  @Text('The name.', { required: true }) name: string;
}
@TellsOtherMembers()
class TellingDto extends OpenDto {}
class PartsDto extends OpenDto {
  @NestedList('Parts.', { type: OpenDto }) parts?: OpenDto[];
  @FreeObject('Anything.', { maxLength: 100 }) data?: object;
}
@NoOtherMembers()
class ClosedPartsDto extends PartsDto {}

/** The headers of the response. */
function headersOf(type: DtoClass, body: object): Record<string, string> {
  const headers: Record<string, string> = {};
  const setHeader = (name: string, value: string): void => void (headers[name] = value);
  runInRequestContext({ requestId: 'r', setHeader }, () =>
    judgeUnknownMembers(type, toDto(type, body), body),
  );
  return headers;
}

describe('unknown members', () => {
  it.each([
    ['selected_repo', 'This member is not known here: did you mean selected_repository?'],
    ['nmae', 'This member is not known here: did you mean name?'],
    ['scopes', 'This member is not known here.'],
    ['constructor', 'This member is not known here.'],
    ['x'.repeat(101), 'This member is not known here.'],
  ])('are refused (%j: %j)', (member, msg) => {
    const refused = (): unknown => headersOf(ClosedDto, { name: 'a', selected_branch: 'b', [member]: 1 });

    expect(refused).toThrow(
      expect.objectContaining({ problems: [{ loc: ['body', member], type: 'extra_forbidden', msg }] }),
    );
    expect(refused).toThrow(InvalidInputError);
  });

  it('are named in a header where they are ignored, as far as a header can', () => {
    const body = { selected_branch: null, selected_repo: 'a/b', 'é\n\ud800': 1, ['y'.repeat(200)]: 1 };

    expect(headersOf(OpenDto, body)).toEqual({
      'X-Ignored-Members': `selected_repo, %C3%A9%0A%EF%BF%BD, ${'y'.repeat(100)}`,
    });
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_value, index) => [`m${index}`, 1]));
    expect(headersOf(OpenDto, many)['X-Ignored-Members']?.split(', ')).toHaveLength(20);
  });

  it('are found in objects of a body, and not where anything may be', () => {
    const data = { constructor: PartsDto, selected_repo: 'a/b' };
    const body = { data, parts: [{ selected_branch: 'b' }, { selected_repo: 'a/b' }] };

    expect(headersOf(PartsDto, body)).toEqual({ 'X-Ignored-Members': 'parts.1.selected_repo' });
    expect(() => headersOf(ClosedPartsDto, body)).toThrow(
      expect.objectContaining({
        problems: [
          {
            loc: ['body', 'parts', '1', 'selected_repo'],
            type: 'extra_forbidden',
            msg: 'This member is not known here: did you mean selected_repository?',
          },
        ],
      }),
    );
  });

  it.each([
    ['all are known', OpenDto, { selected_repository: 'a/b' }],
    ['the route says it itself', TellingDto, { selected_repo: 'a/b' }],
  ])('are not mentioned where %s', (_case, type, body) => {
    expect(headersOf(type, body)).toEqual({});
  });
});
