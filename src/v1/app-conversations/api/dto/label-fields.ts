import { applyDecorators } from '@nestjs/common';
import { customRule } from '../../../../common/validation/field.js';
import {
  FreeObject,
  RepeatedText,
  sentenceRule,
  TextMap,
} from '../../../../common/validation/field-decorators.js';

const MAX_TAGS = 32;
const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
/** `name:value`. */
const TAG = /^[^:]+:/;
const MAX_TAG_LENGTH = 256;
/** Characters of JSON. */
export const MAX_METADATA_LENGTH = 16_384;

function tagNameProblem(name: string): string | null {
  return TAG_NAME.test(name)
    ? null
    : 'Expected a name of 1 to 63 letters, digits, dots, hyphens and underscores that begins with a letter or digit.';
}

/** Arrives as a `Map`. */
export function Tags(description: string, example: Record<string, string>): PropertyDecorator {
  return TextMap(description, {
    nullable: true,
    example,
    most: MAX_TAGS,
    valueLength: MAX_TAG_LENGTH,
    keySchema: { pattern: TAG_NAME.source },
    keyRule: sentenceRule(tagNameProblem),
  });
}

export function Metadata(description: string): PropertyDecorator {
  const example = { ticket: { id: 4711 } };
  return FreeObject(description, { nullable: true, example, maxLength: MAX_METADATA_LENGTH });
}

/** Tags that a conversation must have, each as `name:value`. */
export function TagFilter(): PropertyDecorator {
  const list = RepeatedText('Only those with this tag, as `name:value`; repeat it for more.', {
    most: MAX_TAGS,
    // Name, colon and value.
    form: { pattern: TAG.source, maxLength: 64 + MAX_TAG_LENGTH },
    example: ['team:checkout'],
  });
  const form = customRule('tagForm', (value) =>
    Array.isArray(value) && value.some((text) => typeof text === 'string' && !TAG.test(text))
      ? [{ type: 'value_error', msg: 'Expected a tag such as team:checkout.' }]
      : [],
  );
  return applyDecorators(list, form);
}

/** Tags by name; absent without any. */
export function parseTagFilter(given: readonly string[] | undefined): Record<string, string> | undefined {
  return given === undefined || given.length === 0
    ? undefined
    : Object.fromEntries(
        given.map((text) => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]),
      );
}
