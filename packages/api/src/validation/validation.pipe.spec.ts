import { describe, expect, it } from '@jest/globals';
import { IsUppercase } from 'class-validator';
import { InvalidInputError } from '../errors/problem-error.js';
import {
  Decimal,
  Flag,
  FreeObject,
  Integer,
  Nested,
  NestedList,
  NestedMap,
  sentenceRule,
  Text,
  TextList,
  TextMap,
} from './field-decorators.js';
import { type DtoClass, must } from './field.js';
import { InputValidationPipe } from './validation.pipe.js';

class ItemDto {
  @Text('name', { required: true, trim: true, rule: (text) => (text === '' ? 'Empty.' : null) })
  name: string;

  @TextList('words', { nullIsAbsent: true })
  words?: string[];

  @TextMap('map', { keyRule: sentenceRule((key) => (/^[a-z_]+$/.test(key) ? null : 'Bad key.')) })
  map?: Map<string, string>;
}

class BaseDto {
  @Text('text', { nullable: true })
  text?: string | null;
}

class ExampleDto extends BaseDto {
  @Integer('whole', { nullable: true, minimum: 1, maximum: 8 })
  whole?: number | null;

  @Decimal('amount', { minimum: 0 })
  amount?: number;

  @Flag('flag', {})
  flag?: boolean;

  @Nested('item', { type: ItemDto, nullable: true, onlyMembers: ['name', 'words', 'map'] })
  item?: ItemDto | null;

  @NestedList('items', {
    type: ItemDto,
    orText: { read: (text) => ({ name: text }) },
    listRule: (elements) =>
      elements.length === 0
        ? [{ type: 'value_error', msg: 'None.' }]
        : elements.length > 2
          ? [{ type: 'value_error', msg: 'Too many.', path: ['2', 'name'] }]
          : [],
  })
  items?: ItemDto[];

  @NestedMap('by_name', {
    type: ItemDto,
    nullIsAbsent: true,
    nullableValues: true,
    keyRule: must((key) => !String(key).startsWith('x'), 'enum', 'No x.'),
  })
  by_name?: Map<string, ItemDto | null>;
}

const pipe = new InputValidationPipe();

async function accepted(body: unknown, metatype: DtoClass = ExampleDto): Promise<unknown> {
  return pipe.transform(body, { type: 'body', metatype });
}

/** `location type` of every problem, in order. */
async function refused(body: unknown, metatype?: DtoClass): Promise<string[]> {
  const error = await accepted(body, metatype).catch((reason: unknown) => reason);
  if (!(error instanceof InvalidInputError)) {
    throw new Error('expected the body to be refused');
  }
  return error.problems.map(({ loc, type }) => `${loc.join('.')} ${type}`);
}

describe('InputValidationPipe', () => {
  it.each([
    ['{}', {}],
    ['{"text":null,"whole":null,"item":null}', { text: null, whole: null, item: null }],
    ['{"unknown":1,"text":"a"}', { text: 'a' }],
    ['{"whole":"5","amount":"1.5","flag":"true"}', { whole: 5, amount: 1.5, flag: true }],
    ['{"whole":5.0,"amount":5,"flag":0}', { whole: 5, amount: 5, flag: false }],
    ['{"flag":1}', { flag: true }],
    ['{"by_name":null}', {}],
    ['{"items":["a",{"name":" b ","words":null}]}', { items: [{ name: 'a' }, { name: 'b' }] }],
    [
      '{"by_name":{"constructor":{"name":"a","zzz":1},"__proto__":null}}',
      {
        by_name: new Map([
          ['constructor', { name: 'a' }],
          ['__proto__', null],
        ]),
      },
    ],
    [
      '{"item":{"name":"a","map":{"__proto__":"b","constructor":"c"}}}',
      {
        item: {
          name: 'a',
          map: new Map([
            ['__proto__', 'b'],
            ['constructor', 'c'],
          ]),
        },
      },
    ],
  ])('accepts %s', async (body, expected) => {
    const dto = await accepted(JSON.parse(body));
    expect(dto).toBeInstanceOf(ExampleDto);
    expect(dto).toEqual(expected);
  });

  it.each([
    ['null', ['body missing']],
    ['[]', ['body model_attributes_type']],
    ['"x"', ['body model_attributes_type']],
    ['5', ['body model_attributes_type']],
    ['{"text":5}', ['body.text string_type']],
    ['{"text":true}', ['body.text string_type']],
    ['{"text":{"constructor":5}}', ['body.text string_type']],
    ['{"text":{"__proto__":{"constructor":"x"}}}', ['body.text string_type']],
    ['{"whole":"5.0"}', ['body.whole int_parsing']],
    ['{"whole":" 7 "}', ['body.whole int_parsing']],
    ['{"whole":""}', ['body.whole int_parsing']],
    ['{"whole":true}', ['body.whole int_type']],
    ['{"whole":5.5}', ['body.whole int_from_float']],
    ['{"whole":1e30}', ['body.whole int_parsing_size']],
    ['{"whole":"99999999999999999999"}', ['body.whole int_parsing_size']],
    ['{"whole":0}', ['body.whole greater_than_equal']],
    ['{"whole":9}', ['body.whole less_than_equal']],
    ['{"amount":"inf"}', ['body.amount float_parsing']],
    ['{"amount":"1e999"}', ['body.amount finite_number']],
    ['{"amount":true}', ['body.amount float_type']],
    ['{"amount":-0.5}', ['body.amount greater_than_equal']],
    ['{"amount":null}', ['body.amount float_type']],
    ['{"flag":"yes"}', ['body.flag bool_parsing']],
    ['{"flag":"1"}', ['body.flag bool_parsing']],
    ['{"flag":2}', ['body.flag bool_parsing']],
    ['{"flag":null}', ['body.flag bool_type']],
    ['{"item":"x"}', ['body.item model_attributes_type']],
    ['{"item":[]}', ['body.item model_attributes_type']],
    ['{"item":{"zzz":1}}', ['body.item.name missing', 'body.item.zzz extra_forbidden']],
    ['{"item":{"name":"a","constructor":1}}', ['body.item.constructor extra_forbidden']],
    ['{"item":{"name":"  "}}', ['body.item.name value_error']],
    ['{"item":{"name":"a","words":"b"}}', ['body.item.words list_type']],
    ['{"item":{"name":"a","words":["b",1]}}', ['body.item.words.1 string_type']],
    ['{"item":{"name":"a","map":"b"}}', ['body.item.map dict_type']],
    [
      '{"item":{"name":"a","map":{"a":1,"B":"c"}}}',
      ['body.item.map.a string_type', 'body.item.map.B value_error'],
    ],
    ['{"items":{}}', ['body.items list_type']],
    ['{"items":null}', ['body.items list_type']],
    [
      '{"items":[5,{},[],null,{"name":1}]}',
      [
        'body.items.0 model_attributes_type',
        'body.items.1.name missing',
        'body.items.2 model_attributes_type',
        'body.items.3 model_attributes_type',
        'body.items.4.name string_type',
      ],
    ],
    ['{"items":["a","b","c"]}', ['body.items.2.name value_error']],
    ['{"items":[]}', ['body.items value_error']],
    ['{"items":[5]}', ['body.items.0 model_attributes_type']],
    ['{"by_name":[]}', ['body.by_name dict_type']],
    [
      '{"by_name":{"a":{"name":1},"x":{"name":2},"b":"text"}}',
      [
        'body.by_name.a.name string_type',
        'body.by_name.x.[key] enum',
        'body.by_name.x.name string_type',
        'body.by_name.b model_attributes_type',
      ],
    ],
    [
      '{"flag":"x","by_name":5,"amount":"x","whole":"x"}',
      [
        'body.whole int_parsing',
        'body.amount float_parsing',
        'body.flag bool_parsing',
        'body.by_name dict_type',
      ],
    ],
  ])('refuses %s', async (body, expected) => {
    expect(await refused(JSON.parse(body))).toEqual(expected);
  });

  it.each([
    ['items', Array.from({ length: 1_001 }, () => 5), 'body.items too_long'],
    [
      'by_name',
      Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`k${n}`, 5])),
      'body.by_name too_long',
    ],
    ['item', { name: 'a', words: Array.from({ length: 1_001 }, () => 5) }, 'body.item.words too_long'],
  ])('does not walk through too many elements of %s', async (member, value, expected) => {
    expect(await refused({ [member]: value })).toEqual([expected]);
  });

  it.each([
    [{}, ['body.free missing']],
    [{ free: null }, ['body.free dict_type']],
    [{ free: [] }, ['body.free dict_type']],
    [{ free: { text: 'too long' } }, ['body.free value_error']],
    [{ free: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [n, n])) }, ['body.free too_long']],
  ])('refuses a free object %#', async (body, expected) => {
    class FreeDto {
      @FreeObject('free', { required: true, maxLength: 15 }) free: object;
    }

    expect(await refused(body, FreeDto)).toEqual(expected);
  });

  it('leaves what has no rules alone', async () => {
    expect(await pipe.transform('5', { type: 'param', metatype: String })).toBe('5');
  });

  it('never repeats the rejected value', async () => {
    const error = await accepted({ whole: 'hunter2', items: [{ name: 5 }] }).catch(
      (reason: unknown) => reason,
    );
    expect(JSON.stringify(error instanceof InvalidInputError ? error.problems : '')).not.toContain('hunter2');
  });

  it('asks about no text that is too long what may take long', async () => {
    const asked: string[] = [];
    const rule = (text: string): string => {
      asked.push(text);
      return 'Bad.';
    };
    class LongDto {
      @Text('text', { maxLength: 3, rule, pattern: { regex: /^b$/, expected: 'Bad, too.' } })
      text?: string;
    }
    const problemsOf = async (text: string): Promise<unknown> =>
      pipe.transform({ text }, { type: 'body', metatype: LongDto }).catch(({ problems }) => problems);

    expect(await problemsOf('a'.repeat(4))).toMatchObject([{ msg: 'Expected at most 3 characters.' }]);
    expect(asked).toEqual([]);
    expect(await problemsOf('aaa')).toMatchObject([{ msg: 'Bad, too.' }]);
    expect(new Set(asked)).toEqual(new Set(['aaa']));
  });

  it('says what a rule of class-validator says that has no type of its own', async () => {
    class PlainDto {
      @Text('code', {})
      @IsUppercase({ message: 'Expected upper case.' })
      code?: string;
    }

    await expect(pipe.transform({ code: 'a' }, { type: 'body', metatype: PlainDto })).rejects.toMatchObject({
      problems: [{ loc: ['body', 'code'], msg: 'Expected upper case.', type: 'value_error' }],
    });
  });
});
