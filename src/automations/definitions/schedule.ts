import { CronExpressionParser } from 'cron-parser';

export interface Schedule {
  schedule: string;
  timezone: string;
}

/** Five fields, without seconds, and without `H`, which stands for a random value. */
const FIELDS = /^(?!.*\bH\b)[\d*/,\-?L#A-Z]+(?: +[\d*/,\-?L#A-Z]+){4}$/i;
const MAX_LENGTH = 200;

export const FIVE_FIELDS =
  'Expected five fields of cron, such as 0 9 * * 1-5: minute, hour, day, month, weekday.';

const NO_TIME_ZONE = 'Expected the name of a time zone, such as Europe/Berlin.';

export const CRON_CAPABILITIES = {
  minIntervalSeconds: 60,
  timezones: ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')],
};

export function nextTime(schedule: Schedule, after: number): Date | null {
  return nextTimes(schedule, after, 1)[0] ?? null;
}

export function nextTimes({ schedule, timezone }: Schedule, after: number, count: number): Date[] {
  try {
    const times = CronExpressionParser.parse(schedule, { currentDate: new Date(after), tz: timezone });
    return times.take(count).map((time) => time.toDate());
  } catch {
    // The parser says in no other way that it has looked in vain.
    return [];
  }
}

export function scheduleProblem(schedule: string, timezone: string): string | null {
  if (!FIELDS.test(schedule) || schedule.length > MAX_LENGTH) {
    return FIVE_FIELDS;
  }
  try {
    const times = CronExpressionParser.parse(schedule, { tz: timezone });
    return times.hasNext() ? null : 'This schedule never comes to pass.';
  } catch {
    return FIVE_FIELDS;
  }
}

export function timezoneProblem(timezone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return /^[+-]/.test(timezone) ? NO_TIME_ZONE : null;
  } catch {
    return NO_TIME_ZONE;
  }
}
