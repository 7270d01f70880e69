import { parseJson } from '@slipway/common/json-access.js';
import { isJsonObject, type JsonObject } from '@slipway/common/json-merge.js';

const FENCE = '```';
const NUMBER = /^\s*-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,3})?\s*$/;
const MAX_DEPTH = 20;

/** Null: no object. Some models write nothing for no arguments, encode JSON twice or put it in a code block. */
export function parseArguments(written: string): JsonObject | null {
  if (written.trim() === '') {
    return {};
  }
  const once = parseJson(withoutFence(written));
  const value = typeof once === 'string' ? parseJson(withoutFence(once)) : once;
  return isJsonObject(value) ? Object.fromEntries(Object.entries(value)) : null;
}

function withoutFence(text: string): string {
  const trimmed = text.trim();
  const firstLine = trimmed.indexOf('\n');
  return trimmed.startsWith(FENCE) && trimmed.endsWith(FENCE) && firstLine !== -1
    ? trimmed.slice(firstLine + 1, -FENCE.length)
    : text;
}

/** Converts members that are given as text where the schema allows no text: `"30"`, `"true"`, `"[1, 2]"`. */
export function convertArguments(schema: unknown, args: JsonObject): JsonObject {
  const converted = convert(schema, args, { root: schema, depth: 0 });
  return isJsonObject(converted) ? converted : args;
}

interface Place {
  root: unknown;
  depth: number;
}

function convert(schema: unknown, value: unknown, { root, depth }: Place): unknown {
  if (depth > MAX_DEPTH) {
    return value;
  }
  const rules = alternatives(schema, root, depth);
  const given = typeof value === 'string' ? fromText(rules, value) : value;
  const next = { root, depth: depth + 1 };
  if (Array.isArray(given)) {
    const items = only(rules.flatMap((rule) => (rule['items'] === undefined ? [] : [rule['items']])));
    return items === undefined ? given : given.map((item: unknown) => convert(items, item, next));
  }
  if (!isJsonObject(given)) {
    return given;
  }
  const entries = Object.entries(given).map(([name, member]) => {
    const memberRules = only(
      rules.flatMap((rule) => {
        const properties = isJsonObject(rule['properties']) ? rule['properties'] : {};
        const own = Object.hasOwn(properties, name) ? properties[name] : rule['additionalProperties'];
        return isJsonObject(own) ? [own] : [];
      }),
    );
    return [name, memberRules === undefined ? member : convert(memberRules, member, next)] as const;
  });
  return Object.fromEntries(entries);
}

/** Several alternatives with rules for one member leave doubt. */
function only(rules: unknown[]): unknown {
  return rules.length === 1 ? rules[0] : undefined;
}

/** What a text means under these rules; the text itself where it may be one, or fits nothing. */
function fromText(rules: readonly JsonObject[], text: string): unknown {
  const types = new Set(
    rules.flatMap((rule) => [...typesOf(rule), ...(rule['nullable'] === true ? ['null'] : [])]),
  );
  if (types.size === 0 || types.has('any') || types.has('string')) {
    return text;
  }
  const trimmed = withoutFence(text).trim();
  if ((types.has('number') || types.has('integer')) && NUMBER.test(trimmed)) {
    const number = Number(trimmed);
    return types.has('number') || Number.isInteger(number) ? number : text;
  }
  if (types.has('boolean') && /^(true|false)$/i.test(trimmed)) {
    return trimmed.toLowerCase() === 'true';
  }
  if (types.has('null') && /^(null|none)$/i.test(trimmed)) {
    return null;
  }
  const parsed = /^[[{]/.test(trimmed) ? parseJson(trimmed) : undefined;
  const type = Array.isArray(parsed) ? 'array' : 'object';
  return parsed !== undefined && types.has(type) ? parsed : text;
}

/** `any` where a rule does not say. */
function typesOf(rule: JsonObject): string[] {
  const { type } = rule;
  if (typeof type === 'string') {
    return [type];
  }
  if (Array.isArray(type)) {
    return type.filter((name) => typeof name === 'string');
  }
  const values = Array.isArray(rule['enum']) ? rule['enum'] : 'const' in rule ? [rule['const']] : [];
  if (values.length > 0) {
    return values.map((value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value));
  }
  if (isJsonObject(rule['properties'])) {
    return ['object'];
  }
  return rule['items'] === undefined ? ['any'] : ['array'];
}

/** The schemas of which a value has to match one; those that apply together are merged. */
function alternatives(schema: unknown, root: unknown, depth: number): JsonObject[] {
  if (!isJsonObject(schema) || depth > MAX_DEPTH) {
    return [{}];
  }
  const { $ref: reference, anyOf, oneOf, allOf, ...own } = schema;
  if (typeof reference === 'string') {
    return alternatives(resolve(root, reference), root, depth + 1);
  }
  const choice = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : null;
  if (choice !== null) {
    return choice.flatMap((option: unknown) => alternatives(option, root, depth + 1));
  }
  if (Array.isArray(allOf)) {
    const [part, ...others] = allOf.flatMap((option: unknown) => alternatives(option, root, depth + 1));
    return others.length === 0 && part !== undefined ? [{ ...part, ...own }] : [own];
  }
  return [own];
}

function resolve(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#/')) {
    return null;
  }
  let found: unknown = root;
  for (const part of reference.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!isJsonObject(found) || !Object.hasOwn(found, name)) {
      return null;
    }
    found = found[name];
  }
  return found;
}
