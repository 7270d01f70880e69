import path from 'node:path';
import { Expose, plainToInstance, Transform } from 'class-transformer';
import {
  getMetadataStorage,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsUrl,
  Matches,
  Max,
  Min,
  ValidateBy,
  ValidateIf,
  validateSync,
} from 'class-validator';
import { ConfigError } from '@slipway/common/errors/config.error.js';

export interface Variable {
  name: string;
  /** Markdown for operators; sentences. */
  description: string;
  default: string | undefined;
  /** What it takes, from the rules: "a whole number from 1 to 500". */
  form: string;
  /** Whether its value cannot be a secret or contain one. */
  isPlain: boolean;
  /** Whether it may be in a file, which `X_FILE` names. */
  isSecret: boolean;
  /** Those that look at it; empty: it is for whichever is chosen. */
  backends: readonly string[];
}

interface VariableOptions {
  /** The default, in the variable's own unit. */
  default?: string;
  /** The value when neither the variable nor a default is given; null unless set. */
  absent?: unknown;
  /** The rules judge the result. May throw a ConfigError. */
  convert?: (text: string) => unknown;
  /** A number, a word of a list or a path, which may be shown to operators. */
  isPlain?: boolean;
  isSecret?: boolean;
  /** What it takes, where no rule says so. */
  form?: string;
  /** Then an absent variable is judged, too. */
  requiredIf?: (group: never) => boolean;
}

const variablesByGroup = new Map<object, Map<string, Variable>>();

export function variablesOf(group: new () => object): Variable[] {
  const rules = getMetadataStorage().getTargetValidationMetadatas(group, '', false, false);
  return [...(variablesByGroup.get(group.prototype) ?? [])].map(([property, variable]) => {
    const messages = rules.flatMap(({ propertyName, message }) =>
      propertyName === property && typeof message === 'string' ? [message.replace(/^must be /, '')] : [],
    );
    return { ...variable, form: [...new Set(messages)].join('; ') || variable.form };
  });
}

/** Only these backends look at the variable, whose decorator follows. */
export function For(...backends: string[]): PropertyDecorator {
  return (target, property) => {
    const variables = variablesByGroup.get(target);
    const variable = variables?.get(String(property));
    if (variable !== undefined) {
      variables?.set(String(property), { ...variable, backends });
    }
  };
}

/** Fills the member from an environment variable, and applies rules of class-validator. */
export function FromVariable(
  name: string,
  description: string,
  {
    default: initial,
    absent = null,
    convert = (text) => text,
    isPlain = false,
    isSecret = false,
    form = 'text',
    requiredIf,
  }: VariableOptions,
  ...rules: PropertyDecorator[]
): PropertyDecorator {
  const presence = requiredIf
    ? ValidateIf((group: object) => requiredIf(group as never))
    : initial === undefined
      ? IsOptional()
      : null;
  return (target, property) => {
    const variables = variablesByGroup.get(target) ?? new Map<string, Variable>();
    const variable = { name, description, default: initial, form, isPlain, isSecret, backends: [] };
    variablesByGroup.set(target, variables.set(String(property), variable));
    Expose({ name })(target, property);
    Transform(({ value }: { value: string | undefined }) => {
      const text = value ?? initial;
      return text === undefined ? absent : convert(text);
    })(target, property);
    for (const decorate of presence ? [presence, ...rules] : rules) {
      decorate(target, property);
    }
  };
}

/** @throws ConfigError one line for each wrong variable, with its name and what would be right */
export function readGroup<T extends object>(
  type: new () => T,
  variables: Readonly<Record<string, string>>,
): T {
  const group = plainToInstance(type, variables, { excludeExtraneousValues: true });
  const errors = validateSync(group, { forbidUnknownValues: false });
  if (errors.length > 0) {
    const lines = errors.map(({ property, constraints = {} }) => {
      const name = variablesByGroup.get(type.prototype)?.get(property)?.name ?? property;
      return `${name}: ${Object.values(constraints)[0] ?? 'is not valid'}`;
    });
    throw new ConfigError(lines.join('\n'));
  }
  return group;
}

/** What is wrong with a group's variables, as lines of a ConfigError. */
export function problemsOf(
  type: new () => object,
  variables: Readonly<Record<string, string>>,
): readonly string[] {
  try {
    readGroup(type, variables);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) {
      throw error;
    }
    return error.message.split('\n');
  }
}

/** A kind of variable: what is given beside its name and description makes its options and rules. */
function kindOf<Given extends unknown[]>(
  make: (...given: Given) => [VariableOptions, ...rules: PropertyDecorator[]],
) {
  return (name: string, description: string, ...given: Given): PropertyDecorator =>
    FromVariable(name, description, ...make(...given));
}

export const TextVariable = kindOf((options: VariableOptions = {}) => [options]);

export const MatchingVariable = kindOf((pattern: RegExp, message: string, options: VariableOptions = {}) => [
  options,
  Matches(pattern, { message }),
]);

export const PostgresUrlVariable = kindOf(() => [
  { isSecret: true },
  Matches(/^postgres(ql)?:\/\//, { message: 'must start with postgres:// or postgresql://' }),
]);

export const ChoiceVariable = kindOf((words: readonly string[], options: VariableOptions = {}) => {
  const message = `must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return [{ isPlain: true, ...options }, IsIn([...words], { message })];
});

/** The member holds the absolute path. */
export const PathVariable = kindOf((initial?: string) => {
  const usual = initial === undefined ? {} : { default: initial };
  return [{ ...usual, form: 'a path', isPlain: true, convert: (file) => path.resolve(file) }];
});

export const SwitchVariable = kindOf((initial: boolean) => [
  { default: String(initial), isPlain: true, convert: toSwitch },
  IsBoolean({ message: 'must be true or false' }),
]);

function toSwitch(text: string): unknown {
  return text === 'true' ? true : text === 'false' ? false : text;
}

interface NumberRange {
  minimum: number;
  maximum?: number;
  /** The unit, such as `seconds`. */
  unit?: string;
  /** What 0 is for, such as `to keep all events`. */
  zero?: string;
  /** Replaces the message about the range when that would be unclear. */
  message?: string;
  default?: string;
}

function integer(range: NumberRange): [VariableOptions, ...rules: PropertyDecorator[]] {
  const { minimum, maximum, message = expectedOf(range), default: initial } = range;
  return [
    { ...(initial !== undefined && { default: initial }), isPlain: true, convert: toNumber },
    IsInt({ message }),
    Min(minimum, { message }),
    ...(maximum === undefined ? [] : [Max(maximum, { message })]),
  ];
}

export const IntegerVariable = kindOf(integer);

function expectedOf({ minimum, maximum, unit, zero }: NumberRange): string {
  const number = `must be a whole number${unit === undefined ? '' : ` of ${unit}`}`;
  if (zero !== undefined) {
    return `${number}${maximum === undefined ? '' : ` up to ${maximum}`}, 0 ${zero}`;
  }
  if (maximum !== undefined) {
    return `${number} from ${minimum} to ${maximum}`;
  }
  return minimum === 0 ? number : `${number}, at least ${minimum}`;
}

export const PortVariable = kindOf((initial?: string) => {
  const usual = initial === undefined ? {} : { default: initial };
  return integer({ minimum: 0, maximum: 65_535, message: 'must be a port number', ...usual });
});

/** A hundred years: dates beyond it need a calendar of their own. */
const MAX_SECONDS = 3_153_600_000;

export const SecondsVariable = kindOf((initial: string, whatZeroMeans?: string) => {
  const zero = whatZeroMeans === undefined ? '' : `, 0 to ${whatZeroMeans}`;
  const message = `must be a whole number of seconds${zero}`;
  return integer({ minimum: 0, maximum: MAX_SECONDS, message, default: initial });
});

/** The variable has seconds, perhaps a fraction; the member holds milliseconds. */
export const MillisecondsVariable = kindOf((initial: string, maximumSeconds: number) => {
  const message = `must be a number of seconds from 0.1 to ${maximumSeconds}`;
  const convert = (text: string): number => {
    const seconds = toNumber(text);
    // Rounding must not bring a value into the range.
    return seconds >= 0.1 && seconds <= maximumSeconds ? Math.round(seconds * 1000) : Number.NaN;
  };
  return [{ default: initial, isPlain: true, convert }, IsNumber({}, { message })];
});

/** An amount of US dollars. */
export const AmountVariable = kindOf(() => {
  const message = 'must be an amount of US dollars, such as 2.5';
  return [{ isPlain: true, convert: toNumber }, IsNumber({}, { message }), Min(0, { message })];
});

/** Not all that JavaScript reads as a number: `0x10` and `1e3` are more likely a mistake. */
function toNumber(text: string): number {
  return /^\s*[+-]?\d*\.?\d+\s*$/.test(text) ? Number(text) : Number.NaN;
}

type UrlRules = Parameters<typeof IsUrl>[0];

const HTTP_URL: UrlRules = { require_tld: false, require_protocol: true, protocols: ['http', 'https'] };

/** The member holds the http(s) address without a trailing slash. */
export const UrlVariable = kindOf(
  (
    { message = 'must be an http(s) address', ...options }: VariableOptions & { message?: string } = {},
    ...rules: PropertyDecorator[]
  ) => [{ ...options, convert: withoutTrailingSlash }, IsUrl(HTTP_URL, { message }), ...rules],
);

const PLAIN_URL: UrlRules = {
  ...HTTP_URL,
  disallow_auth: true,
  allow_query_components: false,
  allow_fragments: false,
};

export const PlainUrlVariable = kindOf(() => [
  { convert: withoutTrailingSlash },
  IsUrl(PLAIN_URL, { message: 'must be an http(s) address without user, password or query' }),
]);

function withoutTrailingSlash(address: string): string {
  return address.replace(/\/+$/, '');
}

/** Empty when absent. */
export const ListVariable = kindOf((...rules: PropertyDecorator[]) => [
  { absent: [], form: 'a comma list', convert: commaList },
  ...rules,
]);

export function commaList(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** A rule that class-validator has no decorator for. */
export function Satisfies(isValid: (value: unknown) => boolean, message: string): PropertyDecorator {
  return ValidateBy({ name: 'satisfies', validator: { validate: isValid } }, { message });
}

/** Scheme, host name and port, as browsers send them in `Origin`. */
export function isOrigin(entry: unknown): boolean {
  return typeof entry === 'string' && URL.canParse(entry) && new URL(entry).origin === entry;
}

/** False for IP addresses. */
export function hasNamesBelow(address: string): boolean {
  if (!URL.canParse(address)) {
    return false;
  }
  const { protocol, host } = new URL(address);
  return URL.canParse(`${protocol}//below.${host}`);
}
