import { describe, expect, it } from '@jest/globals';
import { IsUppercase, ValidateBy, validateSync } from 'class-validator';
import { type DtoClass, toDto } from './field.js';
import { Nested, NestedList, NestedMap } from './nested-fields.js';
import { Decimal, Flag, Integer, IntegerList } from './number-fields.js';
import { keepsRules } from './validation.pipe.js';
import { Choice, Email, Identifier, Instant, RepeatedText, Text, TextList, TextMap } from './text-fields.js';

class PartDto {
  @Text({ required: true, description: 'name', maxLength: 5 })
  name: string;

  @IntegerList({ minimum: 1, description: 'sizes' })
  sizes?: number[];
}

class WholeDto {
  @Text({ nullable: true, description: 'text', pattern: { regex: /^a*$/, expected: 'Only a.' } })
  text?: string | null;

  @Text({ required: true, nullable: true, description: 'must be named' })
  named: string | null;

  @Integer({ minimum: 1, maximum: 8, description: 'whole' })
  whole?: number;

  @Decimal({ minimum: 0, description: 'amount' })
  amount?: number;

  @Flag({ description: 'flag' })
  flag?: boolean;

  @Choice({ values: ['x', 'y'], description: 'choice' })
  choice?: string;

  @Email({ description: 'address' })
  email?: string;

  @Identifier({ description: 'id' })
  id?: string;

  @Instant({ description: 'time' })
  at?: Date;

  @RepeatedText({ most: 2, description: 'repeated' })
  repeated?: string[];

  @TextList({ description: 'words' })
  words?: string[];

  @TextMap({ description: 'map', keyRule: (key) => (key === 'bad' ? 'Bad key.' : null) })
  map?: Map<string, string>;

  @Nested({ type: PartDto, onlyMembers: ['name', 'sizes'], description: 'part' })
  part?: PartDto;

  @NestedList({ type: PartDto, description: 'list' })
  list?: PartDto[];

  @NestedMap({ type: PartDto, nullableValues: true, keyRule: () => null, schema: {}, description: 'parts' })
  parts?: Map<string, PartDto | null>;
}

const VALUES: [string, unknown[]][] = [
  ['text', [null, 'aaa', 'b', 5]],
  ['named', [null, '', undefined, {}]],
  ['whole', [1, '8', 9, 1.5, null, 'x']],
  ['amount', [0, '1.5', -1, Number.NaN, true]],
  ['flag', [true, 'false', 2, null]],
  ['choice', ['x', 'z', null]],
  ['email', ['ada@localhost', 'ada', 5]],
  ['id', ['5d2f8c1e7a3b4c9d8e0f1a2b3c4d5e6f', '5d2f', 5]],
  ['at', ['2030-01-31T12:00:00Z', '2030-02-31T12:00:00Z', 5]],
  ['repeated', ['a', ['a', 'b'], ['a', 'b', 'c'], [5]]],
  ['words', [[], ['a'], ['a', 5], 'a', Array(1_001).fill('a')]],
  ['map', [{}, { a: 'b' }, { bad: 'b' }, { a: 5 }, []]],
  [
    'part',
    [
      { name: 'a' },
      { name: 'a', sizes: [1] },
      {},
      { name: 'a', sizes: [0] },
      { name: 'a', more: 1 },
      'a',
      [],
    ],
  ],
  ['list', [[], [{ name: 'a' }], [{ name: 'a' }, { name: 'too long' }], [null], ['a'], {}]],
  ['parts', [{}, { a: { name: 'a' } }, { a: { name: 5 } }, { a: null }, { a: 'b' }]],
];

function judged(type: DtoClass, plain: Record<string, unknown>): { quick: boolean; full: boolean } {
  const dto = toDto(type, plain);
  return {
    quick: keepsRules(dto),
    full: validateSync(dto, { forbidUnknownValues: false }).length === 0,
  };
}

describe('keepsRules', () => {
  it.each(VALUES.flatMap(([member, values]) => values.map((value): [string, unknown] => [member, value])))(
    'accepts %s = %j only where class-validator does',
    (member, value) => {
      const { quick, full } = judged(WholeDto, { named: 'a', [member]: value });

      expect(quick).toBe(full);
    },
  );

  it('judges all members together', () => {
    const good = {
      named: 'a',
      text: 'aa',
      whole: 3,
      part: { name: 'b' },
      list: [{ name: 'c', sizes: [1, 2] }],
    };

    expect(judged(WholeDto, good)).toEqual({ quick: true, full: true });
    expect(judged(WholeDto, { ...good, list: [{ name: 'c', sizes: [1, 0] }] })).toEqual({
      quick: false,
      full: false,
    });
  });

  it('applies the rules of the classes that a class extends', () => {
    class LongerDto extends PartDto {
      @Text({ required: true, description: 'more' })
      more: string;
    }

    expect(judged(LongerDto, { name: 'a', more: 'b' })).toEqual({ quick: true, full: true });
    expect(judged(LongerDto, { more: 'b' })).toEqual({ quick: false, full: false });
  });

  it('leaves rules to class-validator that wait, and those under a condition of their own', () => {
    class WaitingDto {
      @ValidateBy({ name: 'waits', validator: { validate: () => Promise.resolve(true) } })
      value = 'a';
    }
    class ConditionalDto {
      @IsUppercase({ validateIf: () => false })
      value = 'a';
    }

    expect(keepsRules(new WaitingDto())).toBe(false);
    expect(keepsRules(new ConditionalDto())).toBe(false);
  });
});
