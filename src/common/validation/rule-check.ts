import { getMetadataStorage, type ValidatorConstraintInterface, ValidationTypes } from 'class-validator';

type Metadata = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number];

/** What `ValidateIf` says of a member: whether its rules count. */
type Condition = (object: object, value: unknown) => boolean;

/** One rule of a member. */
interface Check {
  constraint: ValidatorConstraintInterface;
  constraints: unknown[];
  /** Of each element of a collection. */
  each: boolean;
}

interface MemberRules {
  property: string;
  conditions: Condition[];
  checks: Check[];
  /** Whether the value has rules of its own, or its elements have. */
  isNested: boolean;
}

/** Null: it has rules that are not known here. */
const rulesByClass = new WeakMap<object, MemberRules[] | null>();

/**
 * Whether an object keeps all rules of its class. Most input does, and `class-validator` takes twenty times as long to find that
 * out: it groups its rules anew for each object, and prepares an error for each member. False: `validateSync` has to judge,
 * also what of the library's is not known here.
 */
export function keepsRules(object: object): boolean {
  const rules = rulesOf(object.constructor);
  return rules !== null && rules.every((member) => keepsMemberRules(object, member));
}

function keepsMemberRules(object: object, { property, conditions, checks, isNested }: MemberRules): boolean {
  const value: unknown = Reflect.get(object, property);
  if (!conditions.every((applies) => applies(object, value))) {
    return true;
  }
  return (
    checks.every((check) => passes(check, object, property, value)) && (!isNested || keepsNestedRules(value))
  );
}

function passes(
  { constraint, constraints, each }: Check,
  object: object,
  property: string,
  value: unknown,
): boolean {
  const about = { targetName: object.constructor.name, property, object, value, constraints };
  // Only true counts: a promise is for `validateSync`.
  return each && isCollection(value)
    ? [...value.values()].every((element) => constraint.validate(element, about) === true)
    : constraint.validate(value, about) === true;
}

function keepsNestedRules(value: unknown): boolean {
  if (isCollection(value)) {
    return [...value.values()].every(keepsNestedRules);
  }
  return value === undefined || (typeof value === 'object' && value !== null && keepsRules(value));
}

function isCollection(value: unknown): value is readonly unknown[] | Set<unknown> | Map<unknown, unknown> {
  return Array.isArray(value) || value instanceof Set || value instanceof Map;
}

function rulesOf(type: object): MemberRules[] | null {
  let rules = rulesByClass.get(type);
  if (rules === undefined) {
    rules = typeof type === 'function' ? compile(type) : null;
    rulesByClass.set(type, rules);
  }
  return rules;
}

function compile(type: NewableFunction | CallableFunction): MemberRules[] | null {
  const storage = getMetadataStorage();
  const all = storage.getTargetValidationMetadatas(type, '', false, false);
  const members = Object.entries(storage.groupByPropertyName(all)).map(([property, metadata]) =>
    memberRules(property, metadata),
  );
  return members.every((member) => member !== null) ? members : null;
}

function memberRules(property: string, metadata: readonly Metadata[]): MemberRules | null {
  const rules: MemberRules = { property, conditions: [], checks: [], isNested: false };
  for (const one of metadata) {
    switch (one.type) {
      case ValidationTypes.CONDITIONAL_VALIDATION:
        rules.conditions.push(one.constraints[0]);
        break;
      case ValidationTypes.NESTED_VALIDATION:
        rules.isNested = true;
        break;
      case ValidationTypes.CUSTOM_VALIDATION:
      case ValidationTypes.IS_DEFINED:
        if (one.validateIf !== undefined) {
          return null;
        }
        for (const { instance } of getMetadataStorage().getTargetValidatorConstraints(one.constraintCls)) {
          rules.checks.push({ constraint: instance, constraints: one.constraints, each: one.each });
        }
        break;
      default:
        return null;
    }
  }
  return rules;
}
