import { queryOptions } from '@tanstack/react-query';
import cronstrue from 'cronstrue';
import { api, at, bodyOf, by, type Schemas } from '../api/client.js';

export type Trigger = Schemas['AutomationTrigger'];
export type Run = Schemas['AutomationRunResponse'];
export type AutomationRequest = Schemas['CreatePromptAutomationRequest'];

/** The document leaves open what the two members hold, which is what was asked for. */
export interface Automation extends Omit<Schemas['AutomationResponse'], 'trigger' | 'preset_metadata'> {
  trigger: Trigger;
  preset_metadata: Partial<AutomationRequest>;
}

/** What a new automation begins with. */
export type Draft = Partial<Pick<Automation, 'name' | 'prompt' | 'model' | 'timeout' | 'trigger'>> &
  Pick<Automation, 'preset_metadata'>;

/** The most that the service keeps for a user. */
const ALL = { query: { limit: 100 } };

export const automationsQuery = queryOptions({
  queryKey: ['automations'],
  queryFn: async () => (await bodyOf(api.GET('/api/automation/v1', { params: ALL }))).automations as Automation[],
  refetchInterval: 15_000,
});

export function automationQuery(id: string) {
  const queryFn = async () => (await bodyOf(api.GET('/api/automation/v1/{id}', at(id)))) as Automation;
  return queryOptions({ queryKey: ['automations', id], queryFn, refetchInterval: 15_000 });
}

/** The newest first. */
export function runsOf(id: string, limit: number) {
  const params = { path: { id }, query: { limit } };
  return bodyOf(api.GET('/api/automation/v1/{id}/runs', { params }));
}

export const sourcesQuery = queryOptions({
  queryKey: ['automation-webhooks'],
  queryFn: async () => (await bodyOf(api.GET('/api/automation/v1/webhooks', { params: ALL }))).webhooks,
});

export const SOURCES: Record<string, string> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  bitbucket: 'Bitbucket',
  bitbucket_data_center: 'Bitbucket Data Center',
};

export function sourceName(source: string): string {
  return SOURCES[source] ?? source;
}

/** "At 09:00, Monday through Friday (Europe/Berlin)", "GitHub: issues.labeled where label.name == 'agent'"; when next. */
export function timesOf({ trigger, next_run_at: next }: Automation): string[] {
  const { type, schedule = '', timezone, source = '', on = [], filter } = trigger;
  const events = [`${sourceName(source)}: ${[on].flat().join(', ')}`, filter].filter(Boolean).join(' where ');
  const words = type === 'event' ? events : `${inWords(schedule)} (${timezone})`;
  return next === null ? [words] : [words, `Next: ${whenText(next, timezone)}`];
}

function inWords(schedule: string): string {
  try {
    return cronstrue.toString(schedule, { use24HourTimeFormat: true });
  } catch {
    return schedule;
  }
}

/** "Mon, Nov 30, 09:00 GMT+1" */
export function whenText(time: string, timeZone = 'UTC'): string {
  const parts = { weekday: 'short', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' } as const;
  const format = new Intl.DateTimeFormat('en', { ...parts, hourCycle: 'h23', timeZone, timeZoneName: 'short' });
  return format.format(new Date(time));
}

export const templatesQuery = queryOptions({
  queryKey: ['automation-templates'],
  queryFn: async () => (await bodyOf(api.GET('/api/automation/v1/templates'))).templates,
  staleTime: Infinity,
});

/** A template as the editor takes it, with the limits that the service would give. */
export function draftOf({ automation }: Schemas['AutomationTemplateInfo']): Draft {
  const { name, prompt, trigger, ...more } = automation as Partial<AutomationRequest>;
  const limits = { max_budget_per_run: 5, max_budget_per_month: 50 };
  return {
    ...(name && { name }),
    ...(prompt && { prompt }),
    ...(trigger && { trigger }),
    preset_metadata: { ...limits, ...more },
  };
}

export function pastEventsQuery(source: string) {
  const queryFn = async () => (await bodyOf(api.GET('/api/automation/v1/events', by({ source })))).events;
  return queryOptions({ queryKey: ['automation-events', source], queryFn });
}

/** "#23 Totals are wrong", or what happened where the event has no title. */
export function subjectText({ key, number, title }: Schemas['AutomationEventSubject']): string {
  return title === null ? key : [number !== null && `#${number}`, title].filter(Boolean).join(' ');
}
