import { CronExpressionParser } from 'cron-parser';
import { errorMessage } from './errors/error-message.js';

export interface Schedule {
  schedule: string;
  timezone: string;
}

/** Five fields, without seconds, and without `H`, which stands for a random value. */
const FIELDS = /^(?=.{1,200}$)(?!.*\bH\b)[\d*/,\-?L#A-Z]+(?: +[\d*/,\-?L#A-Z]+){4}$/i;
const DAY_MS = 86_400_000;
const HORIZON_MS = 30 * 366 * DAY_MS;

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

export function nextTimes(schedule: Schedule, after: number, count: number): Date[] {
  const times = timesAfter(schedule, after, count);
  // The parser loses its way before clocks change by half an hour (Lord Howe), and finds it again a day later.
  return times.length > 0 ? times : timesAfter(schedule, after + DAY_MS, count);
}

function timesAfter({ schedule, timezone }: Schedule, after: number, count: number): Date[] {
  try {
    const [currentDate, endDate] = [after, after + HORIZON_MS].map((time) => new Date(time));
    const times = CronExpressionParser.parse(schedule, { currentDate, endDate, tz: timezone });
    return times.take(count).map((time) => time.toDate());
  } catch {
    // The parser says in no other way that it has looked in vain.
    return [];
  }
}

export function scheduleProblem(schedule: string, timezone: string): string | null {
  if (!FIELDS.test(schedule)) {
    return FIVE_FIELDS;
  }
  try {
    const times = CronExpressionParser.parse(schedule, { tz: timezone });
    return times.hasNext() ? null : 'This schedule never comes to pass.';
  } catch (error) {
    return `This schedule is not possible: ${errorMessage(error)}`;
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
