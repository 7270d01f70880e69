import { applyDecorators } from '@nestjs/common';
import { ApiSchema } from '@nestjs/swagger';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { evaluate, expressionProblem, isTruthy, MAX_EXPRESSION } from '@slipway/common/jmespath.js';
import { type Schedule, scheduleProblem, timezoneProblem } from '@slipway/common/schedule.js';
import { customRule, field, type FieldKind, type FieldProblem, must } from '@slipway/api/validation/field.js';
import { Choice, Nested, Text } from '@slipway/api/validation/field-decorators.js';
import { WEBHOOK_SOURCES } from '@slipway/git-providers/git-servers.js';

export const TRIGGER_KINDS = ['cron', 'event'];
export const TRIGGER_FROM = ['writers', 'anyone'] as const;
export const CRON_EXAMPLE = { type: 'cron', schedule: '0 9 * * 1-5', timezone: 'Europe/Berlin' };
export const SOURCE_NAME = /^[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?$/;
const SOURCE_EXPECTED = `Expected ${WEBHOOK_SOURCES.join(', ')} or the source of a webhook.`;
const MAX_PATTERNS = 50;
const MAX_PATTERN = 520;
const KEY_PATTERN = /^(?:\*|[A-Za-z0-9_:-]{1,100}(?:\.[A-Za-z0-9_:-]{1,100}){0,4}(?:\.\*)?)$/;

const KEYS_EXPECTED = 'Expected event keys such as issues.labeled, push or pull_request.*.';
const PATTERN = { type: 'string', maxLength: MAX_PATTERN };
const PATTERNS: FieldKind = {
  schema: { oneOf: [PATTERN, { type: 'array', items: PATTERN, maxItems: MAX_PATTERNS }] },
  rules: { areKeys: must(areKeys, 'value_error', KEYS_EXPECTED) },
};

function areKeys(on: unknown): boolean {
  const keys: unknown[] = [on].flat();
  return keys.length <= MAX_PATTERNS && keys.every((key) => typeof key === 'string' && KEY_PATTERN.test(key));
}

/** Which members count follows from `type`. */
@ApiSchema({ name: 'AutomationTrigger' })
export class TriggerDto {
  @Choice('What it waits for.', { required: true, values: TRIGGER_KINDS, example: 'cron' })
  type: 'cron' | 'event';

  @Text('Of a schedule: five fields of cron.', { maxLength: 200, trim: true }) schedule = '';
  @Text('Of a schedule: its time zone.', { default: 'UTC', maxLength: 100 }) timezone = 'UTC';
  @Text('Of events: one of `eventSources` of the capabilities, or your own.', { maxLength: 50 }) source = '';

  @field('Of events: which ones, such as `issues.labeled`, `push` or `pull_request.*`.', {}, PATTERNS)
  on: string | string[] = [];

  @Text("Of events: JMESPath that has to be true for the payload, such as `label.name == 'agent'`.", {
    nullable: true,
    maxLength: MAX_EXPRESSION,
  })
  filter?: string | null;

  @Choice(
    'Of events: who may cause them. `writers` may push to the repository; `anyone` needs `secret_names`, and `git` as `none` or `read`.',
    { nullIsAbsent: true, values: TRIGGER_FROM, default: 'writers' },
  )
  from?: (typeof TRIGGER_FROM)[number];
}

/** What is stored. Rows of earlier versions have no `from`, and mean writers. */
export type Trigger =
  ({ type: 'cron' } & Schedule) | ({ type: 'event' } & Pick<TriggerDto, 'source' | 'on' | 'filter' | 'from'>);

export function TriggerField(presence: { required: true } | { nullIsAbsent: true }): PropertyDecorator {
  const isKnown = (value: unknown): value is TriggerDto =>
    value instanceof TriggerDto && TRIGGER_KINDS.includes(value.type);
  return applyDecorators(
    Nested('When it starts.', { type: TriggerDto, example: CRON_EXAMPLE, ...presence }),
    customRule('trigger', (value) => (isKnown(value) ? triggerProblems(value) : [])),
  );
}

export function toTrigger(given: TriggerDto): Trigger {
  const { type, schedule, timezone, source, on, filter, from = 'writers' } = given;
  return type === 'cron'
    ? { type, schedule, timezone }
    : { type, source, on, ...(filter && { filter }), from };
}

function triggerProblems({ type, schedule, timezone, source, on, filter }: TriggerDto): FieldProblem[] {
  const zone = timezoneProblem(timezone);
  const problems =
    type === 'cron'
      ? { timezone: zone, schedule: scheduleProblem(schedule, zone === null ? timezone : 'UTC') }
      : {
          source: SOURCE_NAME.test(source) ? null : SOURCE_EXPECTED,
          on: [on].flat().length > 0 ? null : KEYS_EXPECTED,
          filter: filter ? expressionProblem(filter) : null,
        };
  return Object.entries(problems).flatMap(([member, msg]) =>
    msg === null ? [] : [{ type: 'value_error', msg, path: [member] }],
  );
}

export interface IncomingEvent {
  source: string;
  /** The event's key; null when the event does not say what it is. */
  key: string | null;
  payload: unknown;
}

/** Why an event does not start what has the trigger; null when it does. */
export function mismatch(trigger: Trigger, { source, key, payload }: IncomingEvent): string | null {
  if (trigger.type === 'cron') {
    return 'It starts at the times of a schedule.';
  }
  if (trigger.source !== source) {
    return `It waits for events of ${trigger.source}.`;
  }
  const patterns = [trigger.on].flat();
  if (key !== null && !patterns.some((pattern) => keyMatches(key, pattern))) {
    return `It waits for ${patterns.join(', ')}, and the event is ${key}.`;
  }
  try {
    const isMatch = !trigger.filter || isTruthy(evaluate(trigger.filter, payload));
    return isMatch ? null : 'Its filter is false for the event.';
  } catch (error) {
    return `Its filter failed: ${errorMessage(error)}.`;
  }
}

/** `a.*` stands for `a` too, as some events have no action, and `a:b` for `a.b`, as Bitbucket writes it. */
export function keyMatches(key: string, pattern: string): boolean {
  const wanted = pattern.replaceAll(':', '.');
  const given = key.replaceAll(':', '.');
  const beginning = wanted.endsWith('.*') ? wanted.slice(0, -1) : null;
  return wanted === '*' || wanted === given || (beginning !== null && `${given}.`.startsWith(beginning));
}
