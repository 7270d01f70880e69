import { clipText, MAX_TOOL_TEXT } from '../../clipped-text.js';

const MAX_DEPTH = 16;

/** The same value if it is small and flat enough for the log, else its JSON as a clipped text. Undefined for nothing. */
export function boundedJson(value: unknown): unknown {
  if (value === undefined || value === null) {
    return undefined;
  }
  const flat = cut(value, MAX_DEPTH);
  const json = JSON.stringify(flat);
  return json.length > MAX_TOOL_TEXT ? clipText(json) : flat;
}

/** Deeper members are left out: what walks through events later need not be prepared for any depth. */
function cut(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (depth === 0) {
    return '[...]';
  }
  return Array.isArray(value)
    ? value.map((item) => cut(item, depth - 1))
    : Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cut(member, depth - 1)]));
}
