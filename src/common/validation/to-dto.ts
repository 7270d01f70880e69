import { plainToInstance } from 'class-transformer';

export type DtoClass<T extends object = object> = new () => T;

const EXTRA_MEMBERS = Symbol('extra members');

/** Builds a DTO from a parsed JSON object: listed members only, absent ones stay absent. */
export function toDto<T extends object>(type: DtoClass<T>, plain: Record<string, unknown>): T {
  return plainToInstance(type, plain, { excludeExtraneousValues: true, exposeUnsetFields: false });
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
