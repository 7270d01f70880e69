import type { FieldProblem } from '../../common/validation/field.js';
import { filterProblem } from './event-filter.js';
import { scheduleProblem, timezoneProblem } from './schedule.js';

export interface CronTrigger {
  type: 'cron';
  schedule: string;
  timezone: string;
}

export interface EventTrigger {
  type: 'event';
  source: string;
  on: string | string[];
  filter?: string | null;
}

export type Trigger = CronTrigger | EventTrigger;

/** As on the wire; which members count follows from `type`. */
export type GivenTrigger = Pick<Trigger, 'type'> &
  Partial<Omit<CronTrigger, 'type'> & Omit<EventTrigger, 'type'>>;

export const SOURCE_NAME = /^[a-z0-9](?:[a-z0-9_-]{0,48}[a-z0-9])?$/;
export const MAX_PATTERNS = 50;
const KEY_PATTERN = /^(?:\*|[A-Za-z0-9_:-]{1,100}(?:\.[A-Za-z0-9_:-]{1,100}){0,4}(?:\.\*)?)$/;

/** What is stored: the members that count, with their defaults. */
export function toTrigger({ type, schedule = '', timezone = 'UTC', ...given }: GivenTrigger): Trigger {
  const { source = '', on = [], filter } = given;
  return type === 'cron'
    ? { type, schedule: schedule.trim(), timezone }
    : { type, source, on, ...(filter && { filter }) };
}

export function triggerProblems(given: GivenTrigger): FieldProblem[] {
  const trigger = toTrigger(given);
  const problems = trigger.type === 'cron' ? cronProblems(trigger) : eventProblems(trigger);
  return Object.entries(problems).flatMap(([member, msg]) =>
    msg === null ? [] : [{ type: 'value_error', msg, path: [member] }],
  );
}

function cronProblems({ schedule, timezone }: CronTrigger): Record<string, string | null> {
  const zone = timezoneProblem(timezone);
  return { timezone: zone, schedule: scheduleProblem(schedule, zone === null ? timezone : 'UTC') };
}

function eventProblems({ source, on, filter }: EventTrigger): Record<string, string | null> {
  const keys = [on].flat();
  const areKeys =
    keys.length > 0 && keys.length <= MAX_PATTERNS && keys.every((key) => KEY_PATTERN.test(key));
  const sources = 'Expected github, gitlab, bitbucket, bitbucket_data_center or the source of a webhook.';
  return {
    source: SOURCE_NAME.test(source) ? null : sources,
    on: areKeys ? null : 'Expected event keys such as issues.labeled, push or pull_request.*.',
    filter: filter ? filterProblem(filter) : null,
  };
}
