import { isJsonObject } from '@slipway/common/json-merge.js';
import { z } from 'zod';
import { GitProviderError } from './git-provider.js';

/*
 * Building blocks for the schemas of what git servers send. A response is a stranger's input: what a mapper can do
 * without reads as null (or false, or an empty list) when it is missing or of another type, and a list drops the
 * elements that lack what a mapper needs instead of failing as a whole. Enumerations stay text where an unknown value
 * means the same as none. Lists and texts are cut or dropped where no git server sends more: a mapper is to be done within
 * milliseconds, and what it returns is kept in memory.
 */

const MAX_TEXT_LENGTH = 8_192;
/** Of names and titles: longer than any git server allows. */
const MAX_NAME_LENGTH = 512;
/** Elements of a page: no list is asked for more at a time. */
const PAGE = 100;

/** A text with something in it, which the mapper needs. */
export const requiredText = z.string().min(1).max(MAX_TEXT_LENGTH);

/** A text with something in it; null for anything else. */
export const text = requiredText.nullable().catch(null);

/** A title, or a name of a repository, branch or the like, which the mapper needs. */
export const requiredName = requiredText.max(MAX_NAME_LENGTH);

/** A name; null for anything else. */
export const name = requiredName.nullable().catch(null);

/** What a server counts with: a number, or a text as some servers send it. */
export const requiredId = z.union([z.number().transform(String), requiredName]);

/** A finite number; null for anything else. */
export const number = z.number().nullable().catch(null);

/** False for anything but true. */
export const flag = z.boolean().catch(false);

/** True or false; null for anything else. */
export const knownFlag = z.boolean().nullable().catch(null);

/** An ISO 8601 time, read as epoch milliseconds, which the mapper needs. */
export const requiredInstant = z
  .string()
  .transform((value) => Date.parse(value))
  .pipe(z.number());

/** An ISO 8601 time, read as epoch milliseconds; null for anything else. */
export const instant = requiredInstant.nullable().catch(null);

/** An object; anything else reads as an object without members. */
export function object<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodPreprocess<z.ZodObject<z.core.util.Writeable<Shape>>> {
  return z.preprocess((value) => (isJsonObject(value) ? value : {}), z.object(shape));
}

/** The first elements of a list, those that fit; null for what is no list. */
export function listOrNull<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[] | null> {
  return z
    .array(z.unknown())
    .transform((values) => fitting(values.slice(0, atMost), element))
    .nullable()
    .catch(null);
}

/** The first elements of a list, those that fit; none for what is no list. */
export function list<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[]> {
  return z
    .array(z.unknown())
    .catch([])
    .transform((values) => fitting(values.slice(0, atMost), element));
}

/** The first elements of a list, those that fit; what is no list does not fit at all. */
export function requiredList<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[]> {
  return z.array(z.unknown()).transform((values) => fitting(values.slice(0, atMost), element));
}

/**
 * The response in the form of its schema.
 *
 * @param complaint what the error's cause says
 * @throws GitProviderError `unavailable` when it does not fit
 */
export function requireFitting<T>(schema: z.ZodType<T>, response: unknown, complaint: string): T {
  const result = schema.safeParse(response);
  if (!result.success) {
    throw new GitProviderError('unavailable', { cause: new Error(complaint) });
  }
  return result.data;
}

function fitting<Element extends z.ZodType>(
  values: readonly unknown[],
  element: Element,
): z.output<Element>[] {
  const found: z.output<Element>[] = [];
  for (const value of values) {
    const result = element.safeParse(value);
    if (result.success) {
      found.push(result.data);
    }
  }
  return found;
}
