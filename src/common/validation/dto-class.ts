/** A class whose members carry rules. */
export type DtoClass<T extends object = object> = new () => T;
