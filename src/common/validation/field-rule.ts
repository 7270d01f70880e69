import { ValidateBy, ValidateIf } from 'class-validator';

/** What a rule says of a bad value; `path` leads further down from the property (an index, a key). */
export interface FieldProblem {
  type: string;
  msg: string;
  path?: string[];
}

export type DescribeProblems = (value: unknown) => FieldProblem[];

/** Under this name a rule's `describe` travels in class-validator's error context to `inputProblems`. */
export interface FieldRuleContext {
  describe: DescribeProblems;
}

export interface Presence {
  /** The member must be there. */
  required?: boolean;
  /** null is accepted and keeps its meaning. */
  nullable?: boolean;
}

/**
 * A class-validator rule that can say *why* a value is wrong (type and sentence), not only that it is.
 * Absent members pass unless required; null passes where it is allowed.
 */
export function fieldRule(name: string, presence: Presence, describe: DescribeProblems): PropertyDecorator {
  const full: DescribeProblems = (value) =>
    value === undefined ? [{ type: 'missing', msg: 'This member is required.' }] : describe(value);
  const skip = ValidateIf(
    (_object: object, value: unknown) =>
      !(value === undefined && presence.required !== true) && !(value === null && presence.nullable === true),
  );
  const check = ValidateBy(
    {
      name,
      validator: { validate: (value: unknown) => full(value).length === 0, defaultMessage: () => name },
    },
    { context: { describe: full } satisfies FieldRuleContext },
  );
  return (target, property) => {
    skip(target, property);
    check(target, property);
  };
}
