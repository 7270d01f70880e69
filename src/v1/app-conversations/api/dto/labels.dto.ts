import { customRule, type FieldOptions } from '../../../../common/validation/field.js';
import { FreeObject } from '../../../../common/validation/nested-fields.js';
import { RepeatedText, TextMap } from '../../../../common/validation/text-fields.js';

const MAX_TAGS = 32;
const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
/** A tag in a filter: `name:value`. */
const TAG = /^[^:]+:/;
const MAX_TAG_LENGTH = 256;
/** Characters of JSON. */
export const MAX_METADATA_LENGTH = 16_384;

/** Says what is wrong with the name of a tag; null when nothing is. */
function tagNameProblem(name: string): string | null {
  return TAG_NAME.test(name)
    ? null
    : 'Expected a name of 1 to 63 letters, digits, dots, hyphens and underscores that begins with a letter or digit.';
}

/** Tags of a conversation; arrives as a `Map`. */
export function Tags(options: FieldOptions): PropertyDecorator {
  const map = TextMap({
    ...options,
    keySchema: { pattern: TAG_NAME.source },
    keyRule: tagNameProblem,
  });
  const bounds = customRule('tagBounds', (value) => {
    const values: unknown[] = value instanceof Map ? [...value.values()] : [];
    const isGood =
      values.length <= MAX_TAGS &&
      values.every((text) => typeof text !== 'string' || text.length <= MAX_TAG_LENGTH);
    return isGood
      ? []
      : [
          {
            type: 'value_error',
            msg: `Expected at most ${MAX_TAGS} tags of at most ${MAX_TAG_LENGTH} characters.`,
          },
        ];
  });
  return (target, property) => {
    map(target, property);
    bounds(target, property);
  };
}

/** An object that is kept as it is, up to a number of characters of JSON. */
export function JsonMembers({
  maxLength,
  ...options
}: FieldOptions & { maxLength: number }): PropertyDecorator {
  const object = FreeObject(options);
  const bounds = customRule('jsonLength', (value) =>
    value !== null && value !== undefined && JSON.stringify(value).length > maxLength
      ? [{ type: 'value_error', msg: `Expected at most ${maxLength} characters of JSON.` }]
      : [],
  );
  return (target, property) => {
    object(target, property);
    bounds(target, property);
  };
}

/** Query parameter of the tags that a conversation must have, each as `name:value`. */
export function TagFilter(): PropertyDecorator {
  const list = RepeatedText({
    description: 'Only those with this tag, as `name:value`; repeat it for more.',
    most: MAX_TAGS,
    form: { pattern: TAG.source },
    example: ['team:checkout'],
  });
  const form = customRule('tagForm', (value) =>
    Array.isArray(value) && value.some((text) => typeof text === 'string' && !TAG.test(text))
      ? [{ type: 'value_error', msg: 'Expected a tag such as team:checkout.' }]
      : [],
  );
  return (target, property) => {
    list(target, property);
    form(target, property);
  };
}

/** The tags of a `TagFilter` by name; absent without any. */
export function parseTagFilter(given: readonly string[] | undefined): Record<string, string> | undefined {
  return given === undefined || given.length === 0
    ? undefined
    : Object.fromEntries(
        given.map((text) => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]),
      );
}
