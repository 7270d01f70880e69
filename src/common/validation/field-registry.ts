import type { DtoClass } from './dto-class.js';

/** Turns what JSON holds into what the DTO holds; `undefined` counts as absent. */
export type Coerce = (value: unknown) => unknown;

const declared = new WeakMap<object, Map<string, Coerce>>();
const resolved = new WeakMap<DtoClass, ReadonlyMap<string, Coerce>>();

/** Makes the property a member that is taken from the input; members without it are dropped. */
export function member(coerce: Coerce): PropertyDecorator {
  return (target, property) => {
    const own = declared.get(target) ?? new Map<string, Coerce>();
    declared.set(target, own.set(String(property), coerce));
  };
}

/** The members of a DTO class and of the classes it extends. */
export function membersOf(type: DtoClass): ReadonlyMap<string, Coerce> {
  let members = resolved.get(type);
  if (!members) {
    members = new Map(
      prototypesOf(type)
        .toReversed()
        .flatMap((prototype) => [...(declared.get(prototype) ?? [])]),
    );
    resolved.set(type, members);
  }
  return members;
}

function prototypesOf(type: DtoClass): object[] {
  const chain: object[] = [];
  let prototype: unknown = type.prototype;
  while (typeof prototype === 'object' && prototype !== null) {
    chain.push(prototype);
    prototype = Object.getPrototypeOf(prototype);
  }
  return chain;
}
