import type { FieldProblem } from '../../common/validation/field.js';
import { filterProblem } from './event-filter.js';
import { scheduleProblem, timezoneProblem } from './schedule.js';

/** As on the wire; which members count follows from `type`. */
export interface Trigger {
  type: 'cron' | 'event';
  schedule?: string;
  timezone?: string;
  source?: string;
  on?: string | string[];
  filter?: string | null;
}

export interface CronTrigger extends Trigger {
  type: 'cron';
  schedule: string;
  timezone: string;
}

export interface EventTrigger extends Trigger {
  type: 'event';
  source: string;
  on: string | string[];
}

/** Of the hosts, or of a webhook. */
export const SOURCE_NAME = /^[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?$/;
const KEY_PATTERN = /^(?:\*|[A-Za-z0-9_:-]{1,100}(?:\.[A-Za-z0-9_:-]{1,100}){0,4}(?:\.\*)?)$/;
const MAX_PATTERNS = 50;

export function isCron(trigger: Trigger): trigger is CronTrigger {
  return trigger.type === 'cron';
}

export function patternsOf({ on }: EventTrigger): string[] {
  return typeof on === 'string' ? [on] : on;
}

/** What is stored: the members that count, with their defaults. */
export function toTrigger(given: Trigger): CronTrigger | EventTrigger {
  return given.type === 'cron'
    ? { type: 'cron', schedule: (given.schedule ?? '').trim(), timezone: given.timezone ?? 'UTC' }
    : {
        type: 'event',
        source: given.source ?? '',
        on: given.on ?? [],
        ...(given.filter && { filter: given.filter }),
      };
}

/** What is wrong with a trigger, by member. */
export function triggerProblems(given: Trigger): FieldProblem[] {
  const trigger = toTrigger(given);
  const found = isCron(trigger) ? cronProblems(trigger) : eventProblems(trigger);
  return found.flatMap(([member, msg]) =>
    msg === null ? [] : [{ type: 'value_error', msg, path: [member] }],
  );
}

function cronProblems({ schedule, timezone }: CronTrigger): [string, string | null][] {
  const zone = timezoneProblem(timezone);
  return [
    ['timezone', zone],
    ['schedule', scheduleProblem(schedule, zone === null ? timezone : 'UTC')],
  ];
}

function eventProblems(trigger: EventTrigger): [string, string | null][] {
  const patterns = patternsOf(trigger);
  const arePatterns =
    patterns.length > 0 &&
    patterns.length <= MAX_PATTERNS &&
    patterns.every((pattern) => KEY_PATTERN.test(pattern));
  return [
    [
      'source',
      SOURCE_NAME.test(trigger.source)
        ? null
        : 'Expected github, gitlab, bitbucket, bitbucket_data_center or the source of a webhook.',
    ],
    ['on', arePatterns ? null : 'Expected event keys such as issues.labeled, push or pull_request.*.'],
    ['filter', trigger.filter ? filterProblem(trigger.filter) : null],
  ];
}
