import { isJsonObject } from '@slipway/common/json-access.js';
import { z } from 'zod';
import { GitProviderError } from './git-provider.js';

/**
 * Building blocks for schemas of untrusted responses. Optional members of a wrong type read as null, false or empty;
 * lists drop elements that lack what a mapper needs. Sizes are bounded: mapping must be fast, and results stay in
 * memory.
 */

const MAX_TEXT_LENGTH = 8_192;
/** Longer than any git server allows. */
const MAX_NAME_LENGTH = 512;
/** No list is asked for more elements at a time. */
const PAGE = 100;

export const requiredText = z.string().min(1).max(MAX_TEXT_LENGTH);

export const text = requiredText.nullable().catch(null);

/** A title, or the name of a repository or branch. */
export const requiredName = requiredText.max(MAX_NAME_LENGTH);

export const name = requiredName.nullable().catch(null);

/** Some servers send numbers as text. */
export const requiredId = z.union([z.number().transform(String), requiredName]);

export const number = z.number().nullable().catch(null);

/** False for anything but true. */
export const flag = z.boolean().catch(false);

export const knownFlag = z.boolean().nullable().catch(null);

export const requiredInstant = z
  .string()
  .transform((value) => Date.parse(value))
  .pipe(z.number());

export const instant = requiredInstant.nullable().catch(null);

export function object<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodPreprocess<z.ZodObject<z.core.util.Writeable<Shape>>> {
  return z.preprocess((value) => (isJsonObject(value) ? value : {}), z.object(shape));
}

/** The first elements that fit; null for anything but a list. */
export function listOrNull<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[] | null> {
  return requiredList(element, atMost).nullable().catch(null);
}

/** The first elements that fit; empty for anything but a list. */
export function list<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[]> {
  return requiredList(element, atMost).catch([]);
}

/** The first elements that fit; fails for anything but a list. */
export function requiredList<Element extends z.ZodType>(
  element: Element,
  atMost = PAGE,
): z.ZodType<z.output<Element>[]> {
  return z
    .array(z.unknown())
    .transform((values) => fitting(values.slice(0, atMost), element))
    .meta({ element });
}

/** The members that a schema reads, as hosts want them named: `source.commit.hash,title`. */
export function fieldsOf(schema: z.core.$ZodType, path = ''): string {
  const element = z.globalRegistry.get(schema)?.['element'];
  if (element instanceof z.ZodType) {
    return fieldsOf(element, path);
  }
  if (schema instanceof z.ZodCatch || schema instanceof z.ZodNullable) {
    return fieldsOf(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodPipe) {
    return fieldsOf(schema.out, path);
  }
  const members = schema instanceof z.ZodObject ? Object.entries<z.core.$ZodType>(schema.shape) : [];
  return members.length === 0
    ? path
    : members.map(([member, type]) => fieldsOf(type, path === '' ? member : `${path}.${member}`)).join(',');
}

/** Parses a response; `complaint` becomes the cause. @throws GitProviderError `unavailable` when it does not fit */
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
