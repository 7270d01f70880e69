import { CronExpressionParser } from 'cron-parser';
import type { CronTrigger } from './trigger.js';

/** Five fields, without seconds, and without `H`, which stands for a random value. */
const FIELDS = /^(?!.*\bH\b)[\d*/,\-?L#A-Z]+(?: +[\d*/,\-?L#A-Z]+){4}$/i;
const MAX_LENGTH = 200;
const MIN_INTERVAL_SECONDS = 60;

const EXPECTED = 'Expected five fields of cron, such as 0 9 * * 1-5: minute, hour, day, month, weekday.';
const NEVER = 'This schedule never comes to pass.';

export const CRON_CAPABILITIES = {
  minIntervalSeconds: MIN_INTERVAL_SECONDS,
  timezones: ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')],
};

export function nextTime(trigger: Pick<CronTrigger, 'schedule' | 'timezone'>, after: number): Date | null {
  return nextTimes(trigger, after, 1)[0] ?? null;
}

export function nextTimes(
  { schedule, timezone }: Pick<CronTrigger, 'schedule' | 'timezone'>,
  after: number,
  count: number,
): Date[] {
  try {
    const times = CronExpressionParser.parse(schedule, { currentDate: new Date(after), tz: timezone });
    return times.take(count).map((time) => time.toDate());
  } catch {
    // The parser says in no other way that it has looked in vain.
    return [];
  }
}

export function scheduleProblem(schedule: string, timezone: string): string | null {
  if (schedule.length > MAX_LENGTH || !FIELDS.test(schedule)) {
    return EXPECTED;
  }
  try {
    CronExpressionParser.parse(schedule, { tz: timezone });
  } catch {
    return EXPECTED;
  }
  return nextTime({ schedule, timezone }, Date.now()) === null ? NEVER : null;
}

export function timezoneProblem(timezone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return /^[+-]/.test(timezone) ? 'Expected the name of a time zone, such as Europe/Berlin.' : null;
  } catch {
    return 'Expected the name of a time zone, such as Europe/Berlin.';
  }
}
