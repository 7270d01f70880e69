import type { DtoClass } from './dto-class.js';
import { membersOf } from './field-registry.js';

const EXTRA_MEMBERS = Symbol('extra members');

/**
 * Builds a DTO from a parsed JSON object: listed members only, absent ones stay absent.
 *
 * Done by hand, not with class-transformer: that one walks the whole input before the members' own coercions run,
 * takes each value's `constructor` member for its class (so `{"constructor":5}` throws), and drops keys of that name
 * from maps.
 */
export function toDto<T extends object>(type: DtoClass<T>, plain: Record<string, unknown>): T {
  const dto = new type();
  for (const [property, coerce] of membersOf(type)) {
    const value = Object.hasOwn(plain, property) ? coerce(plain[property]) : undefined;
    if (value !== undefined) {
      Object.assign(dto, { [property]: value });
    }
  }
  return dto;
}

/** Remembers, on the DTO, which members of the input it does not know (`extra_forbidden` needs them). */
export function rememberExtraMembers(
  dto: object,
  plain: Record<string, unknown>,
  known: readonly string[],
): void {
  const extra = Object.keys(plain).filter((key) => !known.includes(key));
  Object.defineProperty(dto, EXTRA_MEMBERS, { value: extra, enumerable: false });
}

export function extraMembers(dto: object): readonly string[] {
  return (dto as { [EXTRA_MEMBERS]?: readonly string[] })[EXTRA_MEMBERS] ?? [];
}
