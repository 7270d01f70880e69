import { isJsonObject, jsonText } from '@slipway/common/json-access.js';

/** Members of what was thought (a block, an item or a detail of that type) that only its server can read. */
const SEALS = ['signature', 'data', 'encrypted_content'];
/** The same beside a message or a call, in the forms of Copilot and Google. */
const BESIDE = ['reasoning_opaque', 'thought_signature'];
/** Google documents this value for histories that others have begun; a call without any is refused. */
export const NO_SIGNATURE = 'skip_thought_signature_validator';

/** What is sealed or signed in a request, in whichever form. */
export function sealsIn(value: unknown): string[] {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, member]) => sealOf(value, name) ?? sealsIn(member))
    : [];
}

/** The same without these seals: thoughts go as a whole, and what was said or called stays. */
export function withoutSeals(value: unknown, seals: ReadonlySet<string>): unknown {
  if (seals.size === 0) {
    return value;
  }
  const isSealed = (owner: unknown, name: string): boolean => seals.has(sealOf(owner, name) ?? '');
  if (Array.isArray(value)) {
    return value
      .filter((item: unknown) => isGoogles(item) || !SEALS.some((name) => isSealed(item, name)))
      .map((item: unknown) => withoutSeals(item, seals));
  }
  if (!isJsonObject(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (!isSealed(value, name)) {
        return [[name, withoutSeals(member, seals)]];
      }
      return name === 'thought_signature' || isGoogles(value) ? [[name, NO_SIGNATURE]] : [];
    }),
  );
}

/** In OpenRouter's form. */
function isGoogles(value: unknown): boolean {
  return jsonText(value, 'format')?.startsWith('google') === true;
}

function sealOf(value: unknown, name: string): string | null {
  const isThought = SEALS.includes(name) && /thinking|reasoning/.test(jsonText(value, 'type') ?? '');
  const seal = isThought || BESIDE.includes(name) ? jsonText(value, name) : null;
  return seal === NO_SIGNATURE ? null : seal;
}
